"""Runs the commands of the guides in docs/, copied from them. Those for root run
in tests/ops/systemd_test.py; those that build are what built this."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import documents
import harness

MIB = harness.MIB


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mets-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        path = f"{harness.BIN}:{pathlib.Path(sys.executable).parent}"
        self.env = dict(os.environ, PATH=f"{path}:{os.environ['PATH']}",
                        METS_RUN_DIR=f"{self.folder}/run")

    def start_daemon(self):
        daemon = harness.Daemon(200 * MIB, 1 << 30)
        daemon.__enter__()
        self.addCleanup(daemon.__exit__)
        self.env["METS_RUN_DIR"] = daemon.run_dir
        return daemon

    def run_line(self, line):
        done = subprocess.run(["bash", "-ec", line], env=self.env,
                              cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}")
        return done.stdout

    def test_every_guide_has_commands(self):
        for guide in documents.GUIDES:
            kinds = [documents.commands(guide, kind)
                     for kind in ("", "jobs", "root", "build")]
            self.assertTrue(any(kinds), guide)

    def test_first_shared_job(self):
        start, *others = documents.commands("first_shared_job")
        self.assertTrue(start.endswith(" &"))
        log = open(f"{self.folder}/log", "w+")
        self.addCleanup(log.close)
        daemon = subprocess.Popen(["bash", "-c", "exec " + start[:-2]],
                                  env=self.env, stderr=log)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        harness.wait_for(
            lambda: "ready" in pathlib.Path(log.name).read_text(), 30, "ready")
        said = "".join(self.run_line(line) for line in others)
        self.assertIn("1.048576e+06", said)
        self.assertIn("any program", said)

    def test_tune(self):
        daemon = self.start_daemon()
        job = daemon.run("first", [harness.BIN / "mets_stepper", "--steps",
                                   100000, "--compute-us", 1000])
        self.addCleanup(job.output.close)
        self.addCleanup(job.stdin.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        harness.wait_for(lambda: daemon.job("first") is not None, 30, "it runs")
        for line in documents.commands("tune", "jobs"):
            self.run_line(line)
        self.assertNotEqual(job.wait(timeout=10), 0)

    def test_troubleshoot(self):
        self.start_daemon()
        said = "".join(map(self.run_line, documents.commands("troubleshoot")))
        self.assertIn("status.json", said)

    def test_operator_speedups(self):
        self.start_daemon()
        for name, text in documents.programs("operator_speedups").items():
            pathlib.Path(self.folder, name).write_text(text)
        for line in documents.commands("operator_speedups"):
            self.run_line(line)
        said = pathlib.Path(self.folder, "operators.md").read_text()
        self.assertRegex(said, r"`_?(Fused)?Conv2D` \| 5 \|.*\| 5 \|")


if __name__ == "__main__":
    unittest.main(verbosity=2)
