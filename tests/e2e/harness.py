"""A metsd, its trainings and what can be seen of them from outside."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("METS_BUILD_DIR", ROOT / "build"))
BIN = BUILD / "bin"
MODELS = ROOT / "tests" / "e2e" / "models.py"
MIB = 1 << 20


def wait_for(condition, seconds, what):
    """Polls until `condition()` is true; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)


class Daemon:
    """A metsd in a run directory of its own."""

    def __init__(self, pool, swap=2 << 30, *flags):
        self.pool = pool
        self._args = ["--device", f"host:{pool}", "--swap-space", str(swap),
                      "--policy", "lru", *flags]
        self._dir = tempfile.TemporaryDirectory(prefix="mets-")
        self.run_dir = self._dir.name
        self.process = None
        self._jobs = []

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=20)
        for job in self._jobs:  # Of a test that has failed.
            if job.poll() is None:
                job.kill()
                job.wait()
        self._dir.cleanup()

    def start(self):
        log = pathlib.Path(self.run_dir, "metsd.log")
        with open(log, "w") as out:
            self.process = self._spawn(
                [BIN / "metsd", "--run-dir", self.run_dir, *self._args], out)
        wait_for(lambda: "ready" in log.read_text()
                 or self.process.poll() is not None, 30, "metsd is ready")
        if self.process.poll() is not None:
            raise AssertionError(f"metsd ended: {log.read_text()}")

    def _spawn(self, command, out):
        return subprocess.Popen(command, stdout=out, stderr=out)

    def log(self):
        """What the present metsd has said."""
        return pathlib.Path(self.run_dir, "metsd.log").read_text()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def metrics_address(self):
        """HOST:PORT, as its `ready` line says."""
        return re.findall(r"metrics http://(127\.0\.0\.1:\d+)/", self.log())[-1]

    def status(self):
        return json.loads(self.ctl("status", "--json").stdout)

    def device(self):
        return self.status()["devices"][0]

    def wait_until_unused(self, seconds=10):
        """Until nobody has any of the first device's memory or swap space: metsd
        ends a session when it sees its connection closed, which is some time
        after the process has ended."""
        seen = {}

        def unused():
            seen.update(self.device())
            return (seen["resident_bytes"] == seen["swap_used_bytes"] == 0
                    and seen["free_bytes"] == self.pool)

        wait_for(unused, seconds, seen)

    def job(self, name):
        for job in self.status()["jobs"]:
            if job["name"] == name:
                return job
        return None

    def ctl(self, *args, check=True):
        return subprocess.run(
            [BIN / "metsctl", "--run-dir", self.run_dir, *args], check=check,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)

    def run(self, job, command, *options, **env):
        """Starts `command` as a job; its output is in `.output`."""
        process = subprocess.Popen(
            [BIN / "metsctl", "--run-dir", self.run_dir, "run", "--job", job,
             *options, "--", *map(str, command)],
            env=dict(os.environ, PYTHONUNBUFFERED="1", **env),
            stdin=subprocess.PIPE, text=True,
            stdout=(output := tempfile.TemporaryFile("w+")), stderr=output)
        process.output = output
        self._jobs.append(process)
        return process


def text_of(process):
    """What it has printed so far; its own place in the file stays."""
    output = process.output.fileno()
    return os.pread(output, os.fstat(output).st_size, 0).decode()


def training(model, steps, out):
    return [sys.executable, MODELS, model, "--steps", steps, "--out", out]


def finish(process, out=None, timeout=300):
    """Waits for a process to end well; returns the JSON that it wrote."""
    code = process.wait(timeout=timeout)
    if code:
        raise AssertionError(f"ended with {code}:\n{text_of(process)}")
    return json.loads(pathlib.Path(out).read_text()) if out else None


def train_alone(model, steps):
    """The training in TensorFlow as it comes, without METS."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run(list(map(str, training(model, steps, out.name))),
                       env=dict(os.environ, METS_DISABLE="1"), check=True,
                       stdout=subprocess.DEVNULL, timeout=300)
        return json.loads(pathlib.Path(out.name).read_text())


def outcome(result):
    """What must not change by one bit."""
    return result["final_loss_hex"], result["weights_sha256"]


def wait_until_training(process, seconds=300):
    """Until the training has printed its first progress line."""
    wait_for(lambda: "\nstep" in "\n" + text_of(process)
             or process.poll() is not None, seconds, "the training runs")


def _memory_by_descriptor(pid, name):
    for fd in os.scandir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(fd.path).startswith(f"/memfd:{name}"):
                yield os.stat(fd.path)


def _memory_by_mapping(pid, name):
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            if f"/memfd:{name}" in line:
                with contextlib.suppress(FileNotFoundError):
                    yield os.stat(f"/proc/{pid}/map_files/{line.split()[0]}")


def _memory(pids, name):
    """Allocated bytes of each memfd of that name, by inode, from its blocks."""
    bytes_of = {}
    for pid in pids:
        for memory in (_memory_by_descriptor, _memory_by_mapping):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError,
                                     PermissionError):
                for stat in memory(pid, name):
                    bytes_of[stat.st_ino] = stat.st_blocks * 512
    return bytes_of


def memory_bytes(pids, name):
    """Allocated bytes of all memfds of that name ("mets-chunk", "mets-extent")
    that the processes held or mapped at one moment, each inode once. Needs root
    for what is only mapped.

    Looking takes a while, in which they come and go: those that were there in
    two looks, one after the other, were all there between them."""
    first, second = _memory(pids, name), _memory(pids, name)
    return sum(second[inode] for inode in first.keys() & second.keys())
