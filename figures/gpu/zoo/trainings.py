"""Trainings of the zoo, on a GPU or a host device: without METS (`stock`),
with it (`mets`), and without it on the machine's processor (`cpu`)."""

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent))
from lab import Daemon, Failed, Job, about, parse_size, tail  # noqa: E402

RUNNER = ROOT / "tests" / "benchmarks" / "models" / "run.py"
FAULTS = (Failed, OSError, ValueError, KeyError, subprocess.TimeoutExpired)


class Lab:
    """What trainings have in common; lab.Daemon's `lab`."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.bin = arguments.bundle.resolve() / "bin"
        self.swap = parse_size(arguments.swap_space)
        self.begin = time.monotonic()
        (arguments.out / "logs").mkdir(parents=True, exist_ok=True)

    def log(self, name):
        return self.arguments.out / "logs" / f"{name}.log"

    def start(self, command, log, env=None, stdin=None):
        return Job([str(word) for word in command], log, env, stdin)

    def seconds(self):
        return time.monotonic() - self.begin

    def may_begin(self):
        return self.seconds() < self.arguments.seconds


class Training:
    """A process of the zoo's runner; with METS, in a pool of its own that has
    room for all. `words`: what the runner gets besides. It is to end within
    --limit seconds, and by --end."""

    def __init__(self, lab, model, way, words):
        self.name = f"{model}-{way}"
        arguments = lab.arguments
        self._lab = lab
        self.expect_within(arguments.limit)
        self._out = arguments.out / "logs" / f"{self.name}.json"
        self._out.unlink(missing_ok=True)
        on_host = arguments.device == "host"
        device = "cpu" if way == "cpu" or on_host else "0"
        if way == "mets" and on_host:
            device = "mets"
        command = [arguments.python, RUNNER, "--model", model, "--device",
                   device, "--json", self._out, *words]
        env = {"METS_REQUIRED": "1"} if way == "mets" else {"METS_DISABLE": "1"}
        with contextlib.ExitStack() as stack:
            if way == "mets":
                daemon = stack.enter_context(Daemon(
                    lab, self.name, parse_size(arguments.pool),
                    ["--status-address", "off"]))
                command = [lab.bin / "metsctl", "--run-dir", daemon.run_dir,
                           "run", "--job", model, "--", *command]
            self._job = lab.start(command, lab.log(self.name), env,
                                  subprocess.PIPE)
            stack.callback(self._job.kill)
            self._ends = stack.pop_all()

    def expect_within(self, seconds):
        """From now on."""
        self._deadline = min(self._lab.seconds() + seconds,
                             self._lab.arguments.end)

    def done(self):
        """Whether it has ended well; raises Failed if not, or not in time."""
        if self._job.done():
            return True
        if self._lab.seconds() > self._deadline:
            raise Failed(f"not done in time\n{tail(self._job.log, 4)}")
        return False

    def ready(self):
        """Of one with --meet: whether it waits behind its warm-up."""
        return self.done() or "\nready\n" in self.said()

    def go(self):
        self._job.process.stdin.write(b"\n")
        self._job.process.stdin.flush()

    def said(self):
        return self._job.log.read_text("utf-8", errors="replace")

    def result(self):
        return json.loads(self._out.read_text("utf-8"))

    def close(self):
        self._ends.close()


def parser_of(document):
    """Of what all scripts of this folder take."""
    parser = argparse.ArgumentParser(description=document.split("\n")[0])
    parser.add_argument("--bundle", type=pathlib.Path,
                        default=ROOT / "build" / "bundle")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda:0", help="or host")
    parser.add_argument("--pool", default="40GiB", help="of each with METS")
    parser.add_argument("--swap-space", default="8GiB")
    parser.add_argument("--limit", type=float, default=200,
                        help="seconds for one training")
    parser.add_argument("--seconds", type=float, default=200,
                        help="after which none begins")
    parser.add_argument("--end", type=float, default=260,
                        help="seconds after which none goes on")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--commit", default="", help="where there is no git")
    return parser


def parse(parser, models, ways):
    """With some of the models and ways that are known, all by default."""
    for option, known in (("models", models), ("ways", ways)):
        parser.add_argument(f"--{option}", default=",".join(known))
    arguments = parser.parse_args()
    arguments.models = names(arguments.models, models, parser)
    arguments.ways = names(arguments.ways, ways, parser)
    arguments.out = arguments.out.resolve()
    return arguments


def names(text, known, parser):
    """The words of a list with commas, all of which are `known`."""
    words = text.split(",")
    unknown = set(words) - set(known)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return words
