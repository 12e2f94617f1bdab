"""pip install . in an environment of its own, with the oldest TensorFlow that METS
supports: the package's plug-in does what the newest one's does.

Downloads TensorFlow and builds METS anew: needs the network, and minutes.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import harness

OLDEST = "2.19.1"
VENV = harness.BUILD / f"wheel-{OLDEST}"
PYTHON = VENV / "bin" / "python"
TESTS = ROOT / "tests" / "tf_allocator"
PROGRAMS = ["graph", "session_training", "xla"]


def run(*command, **env):
    done = subprocess.run(
        [str(word) for word in command], env={**os.environ, **env}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout[-4000:]}")
    return done.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not PYTHON.exists():
            run(sys.executable, "-m", "venv", VENV)
        run(PYTHON, "-m", "pip", "install", "-q", f"tensorflow-cpu=={OLDEST}")
        run(PYTHON, "-m", "pip", "install", "-q", "--force-reinstall",
            "--no-deps", ROOT)
        cls.package = pathlib.Path(run(
            PYTHON, "-c", "import mets; print(mets.__path__[0])").strip())

    def test_it_is_complete(self):
        self.assertTrue((self.package / "py.typed").exists())
        self.assertEqual(
            {file.name for file in (self.package / "lib").iterdir()},
            {"libmets.so", "libmets_torch.so", "libmets_tensorflow.so",
             f"libmets_tensorflow-{OLDEST.rsplit('.', 1)[0]}.so"})

    def test_it_passes_the_packages_test(self):
        run(PYTHON, ROOT / "tests" / "e2e" / "python_package_test.py",
            METS_TEST_INSTALLED="1")

    def test_its_plug_in_passes_the_plug_ins_test(self):
        run(PYTHON, TESTS / "tf_plugin_test.py",
            self.package / "lib" / "libmets_tensorflow.so",
            harness.BUILD / "lib" / "tests" / "libfake_mets.so")

    def test_python_m_mets_runs_programs_that_compute_the_same(self):
        def results(*words, **env):
            text = run(PYTHON, *words, TESTS / "workloads.py", *PROGRAMS, **env)
            return [json.loads(line) for line in text.splitlines()
                    if line.startswith('{"name"')]

        def digests(results):
            return {result["name"]: result["digest"] for result in results}

        with harness.Daemon(24 * harness.MIB) as daemon:
            mets = results("-m", "mets", "--run-dir", daemon.run_dir, "run",
                           "--", PYTHON, METS_REQUIRED="1")
        self.assertGreater(sum(r["moved_bytes"] for r in mets), 0)
        self.assertEqual(digests(mets), digests(results(METS_DISABLE="1")))
        self.assertEqual(set(digests(mets)), set(PROGRAMS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
