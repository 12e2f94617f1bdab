"""metsctl's verbs on real processes: drain, pause, resume, evict, kill,
doctor and report."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock

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
        log = pathlib.Path(self.daemon.run_dir, "metsd.log")
        harness.wait_for(lambda: "job 'a' has ended on host0 after"
                         in log.read_text(), 5, "the log says what it cost")

    def test_a_drained_device_takes_no_new_job(self):
        job = self.start("a")
        self.daemon.ctl("drain", "host0")
        late = self.daemon.run("late", STEPPER)
        self.assertNotEqual(late.wait(timeout=30), 0)
        self.assertIn("is being drained", harness.text_of(late))
        goes_on(job)
        self.daemon.ctl("undrain", "host0")
        self.start("b")

    def test_what_operators_have_said_outlives_metsd(self):
        job, other = self.start("a"), self.start("b")
        self.pause("a")
        self.daemon.ctl("drain", "host0")
        self.daemon.ctl("limit", "b", "128MiB")
        state = pathlib.Path(self.daemon.run_dir, "state.json")
        harness.wait_for(lambda: json.loads(state.read_text())["operator"]
                         ["jobs"][1:], 5, "it is written down")
        self.daemon.kill()
        self.daemon.start()
        goes_on(other)
        self.assertTrue(self.daemon.device()["drained"])
        self.assertEqual(self.daemon.job("b")["limit_bytes"], 128 * MIB)
        harness.wait_for(lambda: not self.daemon.job("a")["gate_open"], 10,
                         "a is back")
        self.assertTrue(self.daemon.job("a")["paused"])
        before, reached = steps(job), steps(other) + 20
        harness.wait_for(lambda: steps(other) >= reached, 30, "b computes")
        self.assertLessEqual(steps(job), before + 1)
        self.daemon.ctl("resume", "a")
        goes_on(job)

    def test_a_drained_device_is_so_after_a_stop_without_jobs(self):
        self.daemon.ctl("drain", "host0")
        for drained in (True, False):
            self.daemon.process.terminate()
            self.daemon.process.wait(timeout=20)
            self.daemon.start()
            self.assertEqual(self.daemon.device()["drained"], drained)
            self.assertEqual("metsctl undrain host0" in self.daemon.log(),
                             drained)
            self.daemon.ctl("undrain", "host0")

    def test_a_drained_device_that_is_configured_no_more(self):
        flags = ("--device", f"host:{16 * MIB}")
        with harness.Daemon(16 * MIB, 64 * MIB, *flags) as daemon:
            daemon.ctl("drain", "host1")
            daemon.process.terminate()
            daemon.process.wait(timeout=20)
            del daemon._args[-2:]
            daemon.start()
            self.assertIn("host1 was drained, and is configured no more",
                          daemon.log())
            self.assertNotIn("undrain", daemon.log())

    def test_doctor_finds_what_is_wrong(self):
        python = ["--python", sys.executable]
        found = json.loads(self.daemon.ctl("doctor", "--json", *python).stdout)
        subjects = {finding["subject"] for finding in found}
        self.assertLessEqual({"sockets", "metsd", "device", "host memory",
                              "huge pages", "GPU driver", "plug-in"}, subjects)
        self.daemon.process.terminate()
        self.daemon.process.wait(timeout=20)
        done = self.daemon.ctl("doctor", *python, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("WRONG  sockets", done.stdout)
        self.assertIn("systemctl start metsd", done.stdout)

    def test_report_has_what_helps_and_no_secrets(self):
        self.start("a")
        with tempfile.TemporaryDirectory() as folder:
            out = f"{folder}/report.tar.gz"
            with unittest.mock.patch.dict(os.environ, {"TOKEN": "secret-4711"}):
                self.daemon.ctl("report", "--out", out)
            with tarfile.open(out) as archive:
                text = {pathlib.PurePath(member.name).name:
                        archive.extractfile(member).read().decode()
                        for member in archive if member.isfile()}
        self.assertEqual(json.loads(text["status.json"])["devices"][0]["id"],
                         "host0")
        self.assertIn("sockets", text["doctor.txt"])
        self.assertIn("'a' uses host0", text["events.txt"])
        self.assertIn("MemAvailable", text["meminfo.txt"])
        self.assertLessEqual({"metsd.log", "metsd.toml", "versions.txt"},
                             set(text))
        self.assertNotIn("secret-4711", "".join(text.values()))

    def test_errors_name_what_there_is(self):
        self.start("a")
        for words, hint in ((("pause", "b"), "there are: a"),
                            (("drain", "gpu7"), "there are: host0")):
            with self.assertRaises(subprocess.CalledProcessError) as caught:
                self.daemon.ctl(*words)
            self.assertIn(hint, caught.exception.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
