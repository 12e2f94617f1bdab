"""The Python package: mets.tensorflow in a running program, python -m mets.

METS_TEST_INSTALLED=1: tries the installed package, instead of the build folder's.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, str(harness.ROOT / "tests" / "tf_allocator"))
import ready_python

MIB = harness.MIB
PACKAGE = {} if os.environ.get("METS_TEST_INSTALLED") else {
    "PYTHONPATH": str(harness.BUILD / "python"),
    "METS_LIBRARY_DIR": str(harness.BUILD / "lib")}

TRAIN = """
import hashlib, json, sys
import tensorflow as tf
import mets.tensorflow
used = mets.tensorflow.enable(job="package") if sys.argv[1] != "stock" else None
tf.keras.utils.set_random_seed(3)
tf.config.experimental.enable_op_determinism()
model = tf.keras.Sequential([tf.keras.layers.Input([512]),
                             tf.keras.layers.Dense(1024, "relu"),
                             tf.keras.layers.Dense(10)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(True),
              jit_compile=False)
x = tf.random.stateless_normal([1024, 512], [1, 2]).numpy()
y = tf.range(1024).numpy() % 10
monitor = mets.tensorflow.StepMonitor(sys.argv[1], every=4)
model.fit(x, y, batch_size=64, epochs=3, verbose=0, shuffle=False,
          callbacks=[monitor] if used else [])
sha = hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights()))
found = mets.tensorflow.stats()
print(json.dumps({"used": used, "sha": sha.hexdigest(),
                  "live": found and found.live_bytes}))
input()
"""

SCALARS = """
import glob, json, sys
import tensorflow as tf
points = {}
for path in glob.glob(sys.argv[1] + "/events*"):
    for event in tf.compat.v1.train.summary_iterator(path):
        for value in event.summary.value:
            points.setdefault(value.tag, []).append(
                [event.step, float(tf.make_ndarray(value.tensor))])
print(json.dumps(points))
"""

TOO_LATE = """
import tensorflow as tf, mets.tensorflow
tf.constant(1.0)
mets.tensorflow.enable()
"""

TOO_LATE_FOR_ITS_SESSION = """
import tensorflow as tf, mets.tensorflow
with tf.Graph().as_default():
    session = tf.compat.v1.Session()
mets.tensorflow.enable()
"""

OTHER_OPTIONS = """
import mets.tensorflow as m
print(m.enable(job="a", limit="64MiB"), m.enable(), m.enable(job="a"), flush=True)
m.enable(job="a", limit="32MiB")
"""

ENABLE = """
import sys, mets.tensorflow, tensorflow as tf
print("used:", mets.tensorflow.enable(required="required" in sys.argv or None))
print("sum:", float(tf.reduce_sum(tf.ones([16, 16]))), mets.tensorflow.stats())
"""


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = ready_python.ReadyPython(
            **PACKAGE, METS_RUN_DIR="/nonexistent")
        cls.addClassCleanup(cls.python.end)

    def raises(self, done, text):
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(text, done.stderr.splitlines()[-1])

    def test_too_late(self):
        for program in TOO_LATE, TOO_LATE_FOR_ITS_SESSION:
            self.raises(self.python.run(program),
                        "RuntimeError: mets.tensorflow.enable(): TensorFlow has "
                        "its devices already; call it before")

    def test_options_are_given_once(self):
        with harness.Daemon(64 * MIB) as daemon:
            done = self.python.run(OTHER_OPTIONS, METS_RUN_DIR=daemon.run_dir)
        self.assertEqual(done.stdout.strip(), "True True True")
        self.raises(done, "RuntimeError: mets.tensorflow.enable(limit='32MiB'): "
                    "METS is enabled already, with limit='64MiB'; give all "
                    "options in the first call")

    def test_another_plug_in(self):
        # TensorFlow itself must not load it: the variable comes afterwards.
        script = ("import os, tensorflow, mets.tensorflow\n"
                  "os.environ['TF_PLUGGABLE_DEVICE_LIBRARY_PATH'] = '/x/y.so'\n"
                  "mets.tensorflow.enable()\n")
        self.raises(self.python.run(script),
                    "another TensorFlow plug-in is there already, and METS works "
                    "with none beside it: /x/y.so")
        # Where TensorFlow looks for some: in every site-packages.
        with tempfile.TemporaryDirectory() as folder:
            plugin = pathlib.Path(folder, "tensorflow-plugins", "other.so")
            plugin.parent.mkdir()
            plugin.touch()
            script = ("import sys, mets.tensorflow\n"
                      f"sys.path.append({folder!r})\n"
                      "mets.tensorflow.enable()\n")
            self.raises(self.python.run(script), str(plugin))

    def test_another_version(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "libmets_tensorflow-1.15.so").touch()
            done = self.python.run(ENABLE, "required", METS_LIBRARY_DIR=folder)
            self.raises(done, "and METS is not built for it: there is no "
                        "libmets_tensorflow-")
            self.assertIn("only libmets_tensorflow-1.15.so", done.stderr)

    def test_no_daemon(self):
        for done in (self.python.run(ENABLE, "required"),
                     self.python.run(ENABLE, METS_REQUIRED="1")):
            self.raises(done, "METS: no metsd answers at /nonexistent/fd.sock")

    def test_without_a_daemon_tensorflow_goes_on_and_says_so(self):
        done = self.python.run(ENABLE)
        self.assertEqual(done.stdout.split("\n")[:2],
                         ["used: False", "sum: 256.0 None"])
        self.assertIn("fd.sock: No such file or directory", done.stderr)
        self.assertIn("TensorFlow goes on without METS", done.stderr)

    def test_disabled(self):
        done = self.python.run(ENABLE, "required", METS_DISABLE="1")
        self.assertEqual(done.stdout.split("\n")[:2],
                         ["used: False", "sum: 256.0 None"])
        self.assertEqual(done.returncode, 0)


class Package(unittest.TestCase):
    def train(self, daemon, folder, steps=0):
        """What TRAIN prints, and the job once metsd knows of so many steps."""
        process = subprocess.Popen(
            [sys.executable, "-c", TRAIN, folder], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, **PACKAGE, "METS_REQUIRED": "1",
                 "METS_RUN_DIR": daemon.run_dir})
        line = process.stdout.readline()
        if steps:  # A process reports them once a second.
            harness.wait_for(lambda: daemon.job("package")["steps"] >= steps,
                             20, f"{steps} steps")
        job = daemon.job("package")
        process.communicate("\n", timeout=60)
        self.assertEqual(process.returncode, 0)
        return json.loads(line), job

    def test_a_program_that_enables_mets_computes_the_same(self):
        with harness.Daemon(256 * MIB) as daemon, \
                tempfile.TemporaryDirectory() as folder:
            stock, _ = self.train(daemon, "stock")
            mets, _ = self.train(daemon, folder, steps=40)
            self.assertIs(mets["used"], True)
            self.assertEqual(mets["sha"], stock["sha"])
            self.assertGreater(mets["live"], MIB)
            points = json.loads(subprocess.run(
                [sys.executable, "-c", SCALARS, folder], check=True,
                stdout=subprocess.PIPE).stdout)
        steps = [step for step, _ in points["mets/resident_bytes"]]
        self.assertEqual(steps, list(range(4, 49, 4)))
        for name in ("resident_bytes", "swapped_bytes", "stall_seconds",
                     "slowdown"):
            self.assertEqual(len(points["mets/" + name]), 12)
        self.assertGreater(points["mets/resident_bytes"][0][1], MIB)
        self.assertGreaterEqual(points["mets/slowdown"][0][1], 1)

    def test_python_m_mets_runs_a_program_as_metsctl_does(self):
        script = ("import mets.tensorflow as m, tensorflow as tf, os\n"
                  "x = tf.ones([1024, 1024])\n"
                  "print(m.enable(priority=1), m.stats().live_bytes >= 4 << 20,"
                  " os.environ['METS_JOB'])\n")
        with harness.Daemon(64 * MIB) as daemon:
            done = subprocess.run(
                [sys.executable, "-m", "mets", "--run-dir", daemon.run_dir,
                 "run", "--job", "named", "--", sys.executable, "-c", script],
                env={**os.environ, **PACKAGE}, timeout=300,
                text=True, stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout.strip(), "True True named")


if __name__ == "__main__":
    unittest.main(verbosity=2)
