"""figures/forks.py runs programs as if they had been started where it was asked,
with an empty module in TensorFlow's place."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FORKS = pathlib.Path(__file__).resolve().parents[2] / "figures" / "forks.py"


class Forks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "tensorflow.py").write_text("keras = None\n")
        self.words = [sys.executable, FORKS, self.folder / "socket"]
        self.process = subprocess.Popen(
            self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(self.folder)})
        self.addCleanup(self.process.communicate)
        self.process.stdout.readline()

    def program(self, text):
        descriptor, file = tempfile.mkstemp(".py", dir=self.folder)
        with open(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
        return [*self.words, file]

    def run_program(self, text, *arguments, **options):
        return subprocess.run([*self.program(text), *arguments], text=True,
                              capture_output=True, check=False, **options)

    def test_a_program_has_arguments_environment_and_streams(self):
        done = self.run_program(
            "import os, sys\n"
            "print(sys.argv[1], os.environ['WORD'], sys.stdin.read())\n"
            "print('error', file=sys.stderr)\n"
            "assert 'tensorflow' in sys.modules and __name__ == '__main__'\n",
            "one", input="three", env={**os.environ, "WORD": "two"})
        self.assertEqual(done.stdout, "one two three\n")
        self.assertEqual(done.stderr, "error\n")
        self.assertEqual(done.returncode, 0)

    def test_exit_codes_are_the_programs(self):
        for text, code in (("import sys; sys.exit(3)", 3),
                           ("import sys; sys.exit('no')", 1),
                           ("import sys; sys.exit()", 0), ("1 / 0", 1),
                           ("import os; os.kill(os.getpid(), 9)", 1)):
            with self.subTest(text):
                self.assertEqual(self.run_program(text).returncode, code)
        self.assertIn("ZeroDivisionError", self.run_program("1 / 0").stderr)

    def test_who_asks_takes_the_program_along(self):
        with subprocess.Popen(
                self.program("import time; print('here', flush=True)\n"
                             "time.sleep(1000)"),
                stdout=subprocess.PIPE) as asks:
            asks.stdout.readline()
            asks.kill()
            self.assertEqual(asks.stdout.read(), b"")  # Until both have ended.

    def test_programs_run_at_once(self):
        with subprocess.Popen(
                self.program("import sys; print('here', flush=True)\n"
                             "sys.stdin.read()"),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
            first.stdout.readline()
            self.assertEqual(self.run_program("print(2)").stdout, "2\n")
            self.assertIsNone(first.poll())


if __name__ == "__main__":
    unittest.main(verbosity=2)
