"""Live trainings of the model zoo, stock and under a metsd of their own, for
measure.py scripts."""

import atexit
import contextlib
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import common

MIB = 1 << 20
# For `metsctl run`: what is to be seen failing needs not wait a minute for memory.
SHORT_WAIT = ["--wait", "10s"]
ZOO = common.ROOT / "tests" / "benchmarks" / "models"

# Sizes at which a training has a hundred MiB and more, nearly all of them in
# tensors of 1 MiB and more, and a step takes some tenths of a second on a core.
MODELS = {
    "ncf": "--batch 65536 --set users=40000 --set items=20000",
    "bert": "--batch 64 --set length=64 --set width=128",
    "transformer": "--batch 64 --set width=128 --set words=4000",
    "resnet50": "--batch 64 --set side=96",
    "retinanet": "--batch 8 --set side=256",
    "mnist_cnn": "--batch 128",
}


class Failed(Exception):
    """A training that did not end well."""


class OutOfMemory(Failed):
    """One that memory did not suffice for."""


def sizes(model):
    """What makes `model` so large, and its ops follow each other in the same
    order in each step."""
    return ["--size", "small", "--parallel-ops", "1", *MODELS[model].split()]


@functools.cache
def forks(build):
    """{whether with METS: the words that run a Python program in a child of a
    process that has imported TensorFlow (forks.py)}; both start on first use."""
    python = str(pathlib.Path(build) / "venv/bin/python")
    folder = tempfile.mkdtemp(prefix="mets-")
    processes, words = [], {}
    for mets, env in {
            False: {"METS_DISABLE": "1"},
            True: {"METS_REQUIRED": "1", "TF_PLUGGABLE_DEVICE_LIBRARY_PATH":
                   f"{build}/lib/libmets_tensorflow.so"}}.items():
        program = [str(common.ROOT / "figures/forks.py"), f"{folder}/{mets}"]
        processes.append(subprocess.Popen(
            [python, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **env}))
        words[mets] = [sys.executable, *program]
    atexit.register(shutil.rmtree, folder)
    for process in processes:
        atexit.register(process.communicate)
        process.stdout.readline()
    return words


def runner(python, model, *words):
    """The command that trains `model` at its size above."""
    return [*python, str(ZOO / "run.py"), "--model", model, *sizes(model),
            *map(str, words)]


class Training:
    """A zoo training that runs; `result` waits for its end."""

    def __init__(self, command, **options):
        self._folder = tempfile.TemporaryDirectory(prefix="mets-")
        self._json = pathlib.Path(self._folder.name, "result.json")
        self._log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [*map(str, command), "--json", str(self._json)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            **options)

    def wait_until(self, said):
        """Until it says a line that begins so; gives that line."""
        for line in self.process.stdout:
            if line.startswith(said):
                return line
        raise self._failure(f"it ended without saying '{said}'")

    def stand_still(self):
        """Until it waits at a --meet, or has ended well."""
        for line in self.process.stdout:
            if line == "ready\n":
                return
        if self.process.wait():
            raise self._failure(f"it ended with {self.process.returncode}")

    def begin(self):
        """Lets a training that waits at a --meet go on."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def result(self):
        for _ in self.process.stdout:
            pass
        if self.process.wait():
            raise self._failure(f"it ended with {self.process.returncode}")
        return json.loads(self._json.read_text(encoding="utf-8"))

    def _failure(self, why):
        self.process.kill()
        self.process.wait()
        self._log.seek(0)
        text = self._log.read()[-2000:]
        kind = (OutOfMemory if "OOM" in text or "RESOURCE_EXHAUSTED" in text
                else Failed)
        return kind(f"{why}:\n{text}")


class Phases:
    """What trainings do that start at the same time, for that takes longest, and
    are timed alone or together while the others stand still: a warm-up, then
    `count` times so many steps, before each of which they wait."""

    def __init__(self, warm_up, steps, count=1):
        self._ends = range(warm_up, warm_up + (count + 1) * steps, steps)
        self.options = ["--warm-up", warm_up, "--steps", self._ends[-1]]
        for end in self._ends[:-1]:
            self.options += ["--meet", end + 1]

    def run(self, phase, *trainings):
        """Lets them do these steps at once; gives the seconds until all have."""
        begin = time.monotonic()
        for training in trainings:
            training.begin()
        for training in trainings:
            training.wait_until(f"step {self._ends[phase + 1]}/")
        seconds = time.monotonic() - begin
        for training in trainings:
            training.stand_still()
        return seconds

    def step_seconds(self, result, phase):
        return result["step_seconds"][self._ends[phase]:self._ends[phase + 1]]

    def moved_bytes(self, result, phase):
        """By METS, in both ways; the first time with the warm-up."""
        def until(end):
            state = (result if end == self._ends[-1]
                     else result["met"][str(end + 1)])
            return (state["mets"]["evicted_bytes_total"]
                    + state["mets"]["restored_bytes_total"])

        return until(self._ends[phase + 1]) - (
            until(self._ends[phase]) if phase else 0)


@contextlib.contextmanager
def standing(*trainings):
    """Once all wait at their first --meet; whose end is not awaited is killed."""
    try:
        for training in trainings:
            training.stand_still()
        yield
    finally:
        for training in trainings:
            training.process.kill()


def stock(build, model, *words, **env):
    """A training without METS; where `env` is to be in its environment, for
    TensorFlow's import, in a process of its own."""
    python = ([pathlib.Path(build) / "venv/bin/python"] if env
              else forks(pathlib.Path(build))[False])
    return Training(runner(python, model, "--device", "cpu", *words),
                    env={**os.environ, **env})


class Metsd:
    """A metsd on a host device, for trainings as its jobs."""

    def __init__(self, build, pool, *flags, swap="4GiB"):
        self._build = pathlib.Path(build)
        self._flags = ["--device", f"host:{pool}", "--swap-space", swap,
                       "--status-address", "off", *flags]

    def __enter__(self):
        self._dir = tempfile.TemporaryDirectory(prefix="mets-")
        log = pathlib.Path(self._dir.name, "metsd.log")
        with open(log, "w", encoding="utf-8") as out:
            self._metsd = subprocess.Popen(
                [self._build / "bin/metsd", "--run-dir", self._dir.name,
                 *self._flags], stderr=out)
        while "ready" not in log.read_text(encoding="utf-8"):
            if self._metsd.poll() is not None:
                sys.exit(log.read_text(encoding="utf-8"))
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self._metsd.terminate()
        self._metsd.wait()
        self._dir.cleanup()

    @property
    def run_dir(self):
        return self._dir.name

    @property
    def pid(self):
        return self._metsd.pid

    def metsctl(self, *words):
        """The command line of metsctl with these words."""
        return [str(self._build / "bin/metsctl"), "--run-dir", self._dir.name,
                *map(str, words)]

    def control(self, *words):
        """What metsctl says."""
        return subprocess.run(self.metsctl(*words), capture_output=True,
                              text=True, check=True).stdout

    def job(self, name):
        """What `metsctl jobs` has of it."""
        jobs = json.loads(self.control("jobs", "--json"))["jobs"]
        return next(job for job in jobs if job["name"] == name)

    def train(self, model, job, *words, options=()):
        """A training as a job; `options` are those of `metsctl run`."""
        command = runner(forks(self._build)[True], model, "--device", "mets",
                         *words)
        return Training(self.metsctl("run", "--job", job, *options, "--",
                                     *command))


def versions(build):
    """Of what trains."""
    packages = ["tensorflow_cpu", "keras", "numpy"]
    said = subprocess.run(
        [pathlib.Path(build) / "venv/bin/python", "-c",
         "import importlib.metadata as m; print(*map(m.version, "
         f"{packages}))"], check=True, capture_output=True, text=True).stdout
    return dict(zip(packages, said.split()))


def outcome(result, steps=None):
    """What METS must not change by one bit: of all steps, or of the first ones,
    behind which a --meet was."""
    state = result["met"][str(steps + 1)] if steps else result
    return result["losses_hex"][:steps], state["weights_sha256"]
