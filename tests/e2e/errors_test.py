"""Every expected failure has its own clear error; nothing hangs or is lost."""

import os
import subprocess
import tempfile
import unittest

import harness

HOG = harness.BIN / "mets_hog"
MIB = harness.MIB
OTHER_UID = 65533


class Errors(unittest.TestCase):
    def hog(self, *args, run_dir=None, **env):
        """Runs a job directly; returns (exit code, its text)."""
        env = dict(os.environ, METS_RUN_DIR=run_dir or self.daemon.run_dir, **env)
        done = subprocess.run([HOG, *map(str, args)], env=env, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        return done.returncode, done.stdout

    def setUp(self):
        self.daemon = harness.Daemon(64 * MIB, 256 * MIB)
        self.daemon.__enter__()
        self.addCleanup(self.daemon.__exit__)

    def tearDown(self):
        harness.wait_for(
            lambda: self.daemon.device()["free_bytes"] == 64 * MIB, 2,
            f"all memory is free again: {self.daemon.device()}")

    def test_one_tensor_larger_than_the_pool(self):
        code, text = self.hog("--mib", 100, "--buffers", 1, "--rounds", 1)
        self.assertEqual(code, 1)
        self.assertIn("100 MiB", text)
        self.assertIn("64 MiB", text)
        self.assertIn("pool", text)

    def test_limit_exceeded_by_one_tensor(self):
        code, text = self.hog("--mib", 48, "--buffers", 1, "--rounds", 1,
                              METS_LIMIT="32MiB", METS_JOB="small")
        self.assertEqual(code, 1)
        self.assertIn("limit", text)
        self.assertIn("32 MiB", text)
        self.assertIn("metsctl limit", text)

    def test_limit_exceeded_by_many_tensors_swaps(self):
        code, text = self.hog("--mib", 60, "--rounds", 40, METS_LIMIT="32MiB")
        self.assertEqual(code, 0, text)

    def test_guarantees_that_do_not_fit(self):
        first = self.daemon.run("first", [HOG, "--mib", 8, "--rounds", 1,
                                          "--pause"], "--guarantee", "40MiB")
        harness.wait_for(lambda: "filled" in harness.text_of(first), 20, "first")
        code, text = self.hog("--rounds", 1, METS_GUARANTEE="40MiB")
        first.kill()
        first.wait()
        self.assertEqual(code, 1)
        self.assertIn("guarantee", text)
        self.assertIn("first", text)
        self.assertIn("40 MiB", text)

    def test_bad_job_name(self):
        code, text = self.hog("--rounds", 1, METS_JOB="no spaces/please")
        self.assertEqual(code, 1)
        self.assertIn("no spaces/please", text)
        self.assertIn("1 to 63 characters", text)

    def test_daemon_not_running(self):
        with tempfile.TemporaryDirectory() as empty:
            code, text = self.hog("--rounds", 1, run_dir=empty)
        self.assertEqual(code, 1)
        self.assertIn(empty, text)
        self.assertIn("metsd", text)

    def test_bad_environment(self):
        for name, value in (("METS_LIMIT", "lots"), ("METS_WAIT", "soon"),
                            ("METS_PRIORITY", "high")):
            with self.subTest(name):
                code, text = self.hog("--rounds", 1, **{name: value})
                self.assertEqual(code, 1)
                self.assertIn(name, text)
                self.assertIn(value, text)

    def test_waiting_fails_when_told_to_and_names_the_holders(self):
        holder = self.daemon.run("holder", [HOG, "--mib", 60, "--inputs", 8,
                                            "--pause", "--rounds", 1])
        harness.wait_for(lambda: "filled" in harness.text_of(holder), 20, "fill")
        # Nothing can leave: there is no swap space for 40 MiB more.
        self.daemon.ctl("limit", "holder", "64MiB")
        code, text = self.hog("--mib", 300, "--buffers", 10, "--rounds", 1,
                              METS_WAIT="1s")
        holder.kill()
        holder.wait()
        self.assertEqual(code, 1)
        self.assertIn("holder", text)
        self.assertIn("swap space", text)

    @unittest.skipUnless(os.getuid() == 0, "needs root to become another user")
    def test_another_user_without_the_group(self):
        os.chmod(self.daemon.run_dir, 0o755)
        done = subprocess.run(
            [HOG, "--rounds", "1"], user=OTHER_UID, group=OTHER_UID,
            extra_groups=[], timeout=60, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env=dict(os.environ, METS_RUN_DIR=self.daemon.run_dir))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("may not connect", done.stdout)
        self.assertIn("group", done.stdout)

    def test_limit_of_an_unknown_job(self):
        done = self.daemon.ctl("limit", "nobody", "1GiB", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nobody", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
