"""Scripts that people start explain themselves, and do nothing else then."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPTS = ("deploy/quickstart", "deploy/bundle", "tests/run", "tests/ops/setup.sh")


class Scripts(unittest.TestCase):
    def run_script(self, script, *args):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder, "build")
            done = subprocess.run([ROOT / script, *args], text=True, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=dict(os.environ, BUILD=str(build)))
            self.assertFalse(build.exists(), "something was set up")
        return done

    def test_help_is_the_usage_and_does_nothing(self):
        for script in SCRIPTS:
            for flag in ("--help", "-h"):
                with self.subTest(script=script, flag=flag):
                    done = self.run_script(script, flag)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(f"  {script}", done.stdout)
                    self.assertNotIn("set -e", done.stdout)

    def test_what_is_not_understood_is_said(self):
        for script in SCRIPTS:
            if script == "tests/run":  # ctest's arguments.
                continue
            with self.subTest(script=script):
                done = self.run_script(script, "--helpme")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("unknown argument '--helpme'", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
