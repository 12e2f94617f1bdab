"""metsctl's verbs on real processes: drain, pause, resume, evict and kill."""

import signal
import subprocess
import unittest

import harness

MIB = harness.MIB
STEPPER = [harness.BIN / "mets_stepper", "--persistent-mib", 16,
           "--ephemeral-mib", 32, "--steps", 100000, "--compute-us", 1000,
           "--progress"]


def steps(job):
    return harness.text_of(job).count("step")


def goes_on(job):
    before = steps(job)
    harness.wait_for(lambda: steps(job) > before, 10,
                     f"it goes on: {harness.text_of(job)[-500:]}")


class Operator(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(256 * MIB, 512 * MIB)
        self.daemon.__enter__()
        self.addCleanup(self.daemon.__exit__)

    def start(self, name):
        job = self.daemon.run(name, STEPPER)
        self.addCleanup(job.output.close)
        self.addCleanup(job.stdin.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        goes_on(job)
        return job

    def pause(self, name):
        """Pauses the job, and waits until nothing of it runs."""
        self.daemon.ctl("pause", name)
        harness.wait_for(lambda: self.daemon.job(name)["pinned_bytes"] == 0, 10,
                         "nothing of it runs")

    def test_a_paused_job_rests_and_goes_on(self):
        job = self.start("a")
        self.pause("a")
        self.assertTrue(self.daemon.job("a")["paused"])
        before = steps(job)
        other = self.start("b")
        reached = steps(other) + 20
        harness.wait_for(lambda: steps(other) >= reached, 30, "b computes")
        self.assertLessEqual(steps(job), before + 1)
        self.daemon.ctl("resume", "a")
        goes_on(job)

    def test_evict_empties_a_paused_job(self):
        job = self.start("a")
        self.pause("a")
        said = self.daemon.ctl("evict", "a").stdout
        self.assertIn("have left the devices, 0 B stay", said)
        self.assertEqual(self.daemon.job("a")["resident_bytes"], 0)
        self.assertGreater(self.daemon.job("a")["swapped_bytes"], 0)
        self.daemon.ctl("resume", "a")
        goes_on(job)

    def test_kill_ends_the_process_and_returns_its_memory(self):
        job = self.start("a")
        said = self.daemon.ctl("kill", "a").stdout
        self.assertIn("1 process has ended", said)
        self.assertEqual(job.wait(timeout=10), -signal.SIGTERM)
        harness.wait_for(
            lambda: self.daemon.device()["free_bytes"] == 256 * MIB, 5,
            "its memory is back")

    def test_a_drained_device_takes_no_new_job(self):
        job = self.start("a")
        self.daemon.ctl("drain", "host0")
        late = self.daemon.run("late", STEPPER)
        self.assertNotEqual(late.wait(timeout=30), 0)
        self.assertIn("is being drained", harness.text_of(late))
        goes_on(job)
        self.daemon.ctl("undrain", "host0")
        self.start("b")

    def test_errors_name_what_there_is(self):
        self.start("a")
        for words, hint in ((("pause", "b"), "there are: a"),
                            (("drain", "gpu7"), "there are: host0")):
            with self.assertRaises(subprocess.CalledProcessError) as caught:
                self.daemon.ctl(*words)
            self.assertIn(hint, caught.exception.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
