"""Jobs that wait for each other's memory go on."""

import os
import subprocess
import time
import unittest

import harness

HOG = harness.BIN / "mets_hog"
MIB = harness.MIB


class Stress(unittest.TestCase):
    def run_jobs(self, count, pool, *args):
        with harness.Daemon(pool, 2 << 30) as daemon:
            jobs = [daemon.run(f"job{i}", [HOG, *args]) for i in range(count)]
            for job in jobs:
                harness.finish(job, timeout=200)
            daemon.wait_until_unused()

    def test_four_jobs_in_a_pool_barely_larger_than_one_op(self):
        # An op needs 3 * 8 + 8 = 32 MiB; each job owns 64 MiB.
        self.run_jobs(4, 33 * MIB, "--mib", 64, "--buffers", 8, "--inputs", 3,
                      "--output-mib", 8, "--rounds", 50)

    def test_four_jobs_whose_ops_do_not_say_what_they_allocate(self):
        # One more MiB than the four can pin at once before the device is known
        # to be tight, and one output: 4 * 8 + 8.
        self.run_jobs(4, 41 * MIB, "--mib", 64, "--buffers", 8, "--inputs", 3,
                      "--output-mib", 8, "--silent", "--rounds", 50)

    def test_idle_job_gives_way_and_finds_its_bytes_again(self):
        with harness.Daemon(64 * MIB) as daemon:
            idle = subprocess.Popen(
                [HOG, "--mib", "48", "--pause", "--rounds", "20"],
                env=dict(os.environ, METS_RUN_DIR=daemon.run_dir,
                         METS_JOB="idle"),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.assertEqual(idle.stdout.readline(), "filled\n")
            time.sleep(1)
            active = daemon.run("active", [HOG, "--mib", 60, "--rounds", 100])
            harness.finish(active)
            job = daemon.job("idle")
            self.assertGreater(job["swapped_bytes"], 40 * MIB)
            out, _ = idle.communicate("go on\n", timeout=60)
            self.assertEqual((idle.returncode, out), (0, "ok\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
