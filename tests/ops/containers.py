"""Containers with what was built, as root under podman and runc."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("METS_BUILD_DIR", ROOT / "build"))
BASE = "localhost/mets-ops-base"
# The default limits are more than a machine may allow.
LIMITS = ["--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1000:2000"]
# Modules of the Python that runs the test, for Debian's Python of that version.
MODULES = pathlib.Path(sysconfig.get_paths()["purelib"])


def missing():
    """Why the containers cannot be tried here; empty when they can."""
    if os.geteuid() != 0:
        return "containers are tried as root"
    if not shutil.which("podman") or not shutil.which("runc"):
        return "podman and runc are not installed: run tests/ops/setup.sh"
    if podman("image", "exists", BASE, check=False).returncode:
        return f"there is no image {BASE}: run tests/ops/setup.sh"
    return ""


def podman(*args, check=True, timeout=600, **kwargs):
    done = subprocess.run(
        ["podman", "--runtime", "runc", "--cgroup-manager=cgroupfs",
         *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=timeout, **kwargs)
    if check and done.returncode:
        raise AssertionError(f"podman {args[0]} {args[1:4]}: {done.returncode}\n"
                             f"{done.stdout}")
    return done


def wait_for(condition, seconds, what):
    """Polls until `condition()` is true; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(
                f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.02)


class Container:
    """A running container; removed with the object."""

    def __init__(self, name, image, *options, command=(), network="none"):
        self.name = f"mets-ops-{os.getpid()}-{name}"
        podman("run", "-d", "--name", self.name, *LIMITS,
               f"--network={network}", *options, image, *command)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        podman("rm", "-f", "-t", "5", self.name, check=False)

    def run(self, *command, user=None, check=True, env=()):
        """Runs a command in it; its output, also what went to stderr."""
        options = ["--user", user] if user else []
        for variable in env:
            options += ["--env", variable]
        return podman("exec", *options, self.name, *command, check=check).stdout

    def popen(self, *command, user=None, env=()):
        options = ["--user", user] if user else []
        for variable in env:
            options += ["--env", variable]
        process = subprocess.Popen(
            ["podman", "--runtime", "runc", "exec", *options, self.name,
             *map(str, command)], text=True,
            stdout=(output := tempfile.TemporaryFile("w+")),
            stderr=subprocess.STDOUT)
        process.output = output
        return process

    def wait(self, timeout=300):
        """Waits for the container's own command; its exit status."""
        done = podman("wait", self.name, timeout=timeout)
        return int(done.stdout.split()[-1])

    def logs(self):
        return podman("logs", self.name, check=False).stdout


def text_of(process):
    output = process.output.fileno()
    return os.pread(output, os.fstat(output).st_size, 0).decode()


@contextlib.contextmanager
def staged():
    """A folder whose `stage` has what `cmake --install` puts on a machine."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cmake", "--install", BUILD],
                       env=dict(os.environ, DESTDIR=f"{folder}/stage"),
                       check=True, stdout=subprocess.DEVNULL)
        yield folder


def build_image(name, containerfile, context, *arguments):
    """The image that `containerfile` makes from BASE and `context`."""
    options = []
    for argument in (f"BASE={BASE}", *arguments):
        options += ["--build-arg", argument]
    podman("build", "--isolation=chroot", "--network=host", "--format=docker",
           "-t", name, *options, "-f", containerfile, context)
    return name


if __name__ == "__main__":
    print(missing() or "containers can be tried")
    sys.exit(bool(missing()))
