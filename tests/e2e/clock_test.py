"""Somebody sets the machine's clock: jobs and metsd go on as if nothing was.

Only these processes' own clock is set, by a library that is preloaded: what they
read. To the kernel they then are as after the clock was set the other way."""

import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

import harness

HOG = harness.BIN / "mets_hog"
MIB = harness.MIB
HOUR = 3600


class Daemon(harness.Daemon):
    def __enter__(self):
        file = pathlib.Path(self.run_dir, "clock")
        file.write_bytes(bytes(8))
        self.env = {"SET_CLOCK_FILE": str(file),
                    "LD_PRELOAD": str(harness.BUILD / "lib/libset_clock.so")}
        return super().__enter__()

    def set_clock(self, seconds):
        with open(self.env["SET_CLOCK_FILE"], "r+b") as file:
            file.write(struct.pack("=q", seconds))

    def _spawn(self, command, out):
        return subprocess.Popen(command, stdout=out, stderr=out,
                                env=dict(os.environ, **self.env))


class Clock(unittest.TestCase):
    def restored(self, daemon):
        """Bytes, of each job."""
        return {job["name"]: job["restored_bytes_total"]
                for job in daemon.status()["jobs"]}

    def go_on(self, daemon, jobs, what):
        before = self.restored(daemon)
        harness.wait_for(
            lambda: all(self.restored(daemon).get(name, 0)
                        > before.get(name, 0) + 16 * MIB for name in jobs),
            60, f"{what}: they go on")

    def test_jobs_take_turns_whatever_the_clock_says(self):
        with Daemon(64 * MIB) as daemon:
            jobs = {name: daemon.run(name, [HOG, "--mib", 40, "--buffers", 8],
                                     METS_WAIT="120s", **daemon.env)
                    for name in "ab"}
            self.go_on(daemon, jobs, "as it is")
            for hours in (5, -5, 5):
                daemon.set_clock(hours * HOUR)
                self.go_on(daemon, jobs, f"{hours} h")
            daemon.kill()
            daemon.set_clock(10 * HOUR)
            daemon.start()
            harness.wait_for(lambda: set(self.restored(daemon)) == set(jobs), 60,
                             "they are back")
            self.go_on(daemon, jobs, "after a restart")
            for job in jobs.values():
                self.assertIsNone(job.poll(), harness.text_of(job))
                job.kill()
                job.wait()
            daemon.wait_until_unused()


if __name__ == "__main__":
    unittest.main(verbosity=2)
