"""What the measurements on GPUs share: processes with logs, and metsd."""

import datetime
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}


class Failed(Exception):
    """An experiment that could not be completed."""


def parse_size(text):
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return int(float(text[:-len(unit)]) * factor)
    return int(text)


def tail(path, lines=12):
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.split("\n")[-lines - 1:])


class Job:
    """A process with a log; `kill` ends it and what it has started."""

    def __init__(self, command, log, env=None, stdin=None):
        self.log = log
        self._file = open(log, "w", encoding="utf-8")
        self.process = subprocess.Popen(
            command, stdin=stdin, stdout=self._file, stderr=subprocess.STDOUT,
            start_new_session=True, env=dict(os.environ, **(env or {})))

    def done(self):
        """Whether it has ended well; raises Failed when it has not."""
        code = self.process.poll()
        if code:
            raise Failed(f"{self.log.name}: exit status {code}\n"
                         f"{tail(self.log)}")
        return code == 0

    def show_stacks(self):
        """Appends the stacks of all threads to the log, where there is gdb."""
        if self.process.poll() is None and shutil.which("gdb"):
            subprocess.run(
                ["gdb", "-batch", "-p", str(self.process.pid), "-ex",
                 "thread apply all backtrace 30"], stdout=self._file,
                stderr=subprocess.DEVNULL, check=False)

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self._file.close()


class Daemon:
    """metsd in a run directory of its own; notes its status every second.

    `lab` has bin (a folder), swap (bytes), log (name to path), start (a Job, or
    None in a dry run) and arguments.device. `more`: arguments for metsd.
    """

    def __init__(self, lab, name, pool, more=()):
        self._lab, self._name, self._pool = lab, name, pool
        self._more = more
        self._stop = threading.Event()

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="mets-")
        self.run_dir = self._folder.name
        self._log = self._lab.log(f"{self._name}-metsd")
        command = [self._lab.bin / "metsd", "--run-dir", self.run_dir,
                   "--device", f"{self._lab.arguments.device}:{self._pool}",
                   "--swap-space", str(self._lab.swap), *self._more]
        self._job = self._lab.start(command, self._log)
        if self._job:
            try:
                self._wait_until_ready()
            except BaseException:
                self._job.kill()
                raise
            self._watcher = threading.Thread(target=self._watch)
            self._watcher.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        if self._job:
            self._watcher.join()
            self._job.process.terminate()
            try:
                self._job.process.wait(10)
            except subprocess.TimeoutExpired:
                pass
            self._job.kill()
        self._folder.cleanup()

    def _wait_until_ready(self):
        deadline = time.monotonic() + 30
        while "ready" not in tail(self._log, 100):
            if self._job.process.poll() is not None or (
                    time.monotonic() > deadline):
                raise Failed(f"metsd is not ready\n{tail(self._log)}")
            time.sleep(0.05)

    def _ask(self):
        return subprocess.run(
            [self._lab.bin / "metsctl", "--run-dir", self.run_dir, "status",
             "--json"], capture_output=True, text=True, check=False, timeout=20)

    def status(self):
        """What `metsctl status --json` says; {} in a dry run."""
        if not self._job:
            return {}
        done = self._ask()
        if done.returncode != 0:
            raise Failed(f"metsctl status: {done.stderr}")
        return json.loads(done.stdout)

    def _watch(self):
        path = self._lab.log(f"{self._name}-status").with_suffix(".jsonl")
        with open(path, "w", encoding="utf-8") as file:
            while not self._stop.wait(1):
                done = self._ask()
                text = done.stdout if done.returncode == 0 else done.stderr
                file.write(" ".join(text.split()) + "\n")


def output(*command):
    """What a command prints; nothing where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def about(script, commit, python=None):
    """Of a file of figures: its command, commit, date and device.

    `python`: the program whose PyTorch is used, if one is.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    gpu = output("nvidia-smi", "--query-gpu=name,memory.total,driver_version",
                 "--format=csv,noheader")
    torch = python and output(
        python, "-c", "import torch; print('PyTorch', torch.__version__)")
    return {
        "command": shlex.join([script, *sys.argv[1:]]),
        "commit": commit or output("git", "-C", here, "rev-parse", "HEAD"),
        "date": datetime.date.today().isoformat(),
        "device": "; ".join(text for text in (gpu, torch) if text),
    }
