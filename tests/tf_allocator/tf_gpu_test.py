"""The plug-in in a TensorFlow with CUDA, on a GPU, with metsd.

    python tf_gpu_test.py BIN [unittest's arguments]

BIN: the folder of metsd and metsctl, in a build or a bundle. Skips where this
Python's TensorFlow sees no GPU.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
POOL = 2 << 30
STOCK = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "METS_WAIT": "10s",
         "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
for name in ("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "METS_REQUIRED"):
    STOCK.pop(name, None)


def run(command, env):
    return subprocess.run([str(word) for word in command], env=env, timeout=300,
                          capture_output=True, text=True, check=False)


def has_gpu():
    done = run([sys.executable, "-c", "import tensorflow as tf; print(len("
                "tf.config.list_physical_devices('GPU')))"], STOCK)
    return done.stdout.strip() not in ("", "0")


class Daemon:
    """metsd with one GPU's pool of POOL bytes, in a folder of its own."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="mets-")
        self.run_dir = self._folder.name
        self._process = subprocess.Popen(
            [BIN / "metsd", "--run-dir", self.run_dir, "--device",
             f"cuda:0:{POOL}", "--swap-space", "4GiB", "--status-address",
             "off"])
        end = time.monotonic() + 60
        while not pathlib.Path(self.run_dir, "fd.sock").exists():
            if self._process.poll() is not None or time.monotonic() > end:
                self._process.kill()
                raise AssertionError("metsd is not there")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(30)
        self._folder.cleanup()

    def run(self, *command, **env):
        return run([BIN / "metsctl", "--run-dir", self.run_dir, "run", "--job",
                    "test", "--", sys.executable, *command], {**STOCK, **env})


LIMIT = """
import tensorflow as tf
gpu = tf.config.list_physical_devices("GPU")[0]
tf.config.set_logical_device_configuration(
    gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=64)])
kept = tf.ones([8 << 20])
try:
    more = tf.ones([12 << 20])
except tf.errors.ResourceExhaustedError as error:
    print("exhausted:", error.message)
del kept
print(float(tf.ones([12 << 20])[0]))
"""

TOO_MUCH = """
import tensorflow as tf
try:
    tf.ones([1 << 20, 1 << 10])
except tf.errors.ResourceExhaustedError as error:
    print("exhausted:", error.message)
print(float(tf.reduce_sum(tf.ones([16, 16]))))
"""

INFO = """
import tensorflow as tf
before = tf.config.experimental.get_memory_info("GPU:0")["current"]
x = tf.ones([16 << 20])
y = x + 1
del y
info = tf.config.experimental.get_memory_info("GPU:0")
print(info["current"] - before >= 64 << 20, info["peak"] >= 128 << 20)
tf.config.experimental.reset_memory_stats("GPU:0")
print(tf.config.experimental.get_memory_info("GPU:0")["peak"] < 128 << 20)
"""

PLACE = """
import tensorflow as tf
print(tf.ones([1 << 20]).device[-5:], float(tf.reduce_sum(tf.ones([16]))))
"""

TWO_GPUS = """
import tensorflow as tf
gpu = tf.config.list_physical_devices("GPU")[0]
tf.config.set_logical_device_configuration(
    gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=512)] * 2)
with tf.device("/GPU:0"):
    x = tf.random.stateless_normal([4096, 1024], [1, 2])
with tf.device("/GPU:1"):
    y = tf.matmul(x, x, transpose_a=True)
with tf.device("/GPU:0"):
    print(float(tf.reduce_sum(tf.abs(y))))
"""

SESSIONS = """
import tensorflow as tf
tf.compat.v1.disable_eager_execution()
x = tf.compat.v1.placeholder(tf.float32, [None, 1024])
w = tf.compat.v1.get_variable("w", initializer=tf.ones([1024, 1024]) / 1024)
y = tf.compat.v1.assign(w, tf.linalg.matmul(w, w) * 0.5 + 0.25 / 1024)
z = tf.reduce_sum(tf.linalg.matmul(x, y))
import numpy
for _ in range(2):
    with tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.global_variables_initializer())
        for i in range(20):
            s = session.run(z, {x: numpy.full([2048, 1024], i, "float32")})
        print(float(s))
"""

# Needs 2.5 GiB for what its gradient reads.
LARGER = """
import tensorflow as tf
tf.compat.v1.disable_eager_execution()
x = tf.compat.v1.get_variable("x", initializer=tf.ones([16 << 20]))
y = x
for _ in range(40):
    y = tf.tanh(y * 1.01)
gradient = tf.gradients(y, x)[0]
options = tf.compat.v1.RunOptions(output_partition_graphs=True)
metadata = tf.compat.v1.RunMetadata()
with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    session.run(gradient, options=options, run_metadata=metadata)
names = [n.name for g in metadata.partition_graphs for n in g.node]
print(len(names) > 80, [name for name in names if "swap" in name])
"""


@unittest.skipUnless(has_gpu(), "TensorFlow sees no GPU")
class Gpu(unittest.TestCase):
    def good(self, done):
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done.stdout.strip()

    def workloads(self, done):
        return {r["name"]: r["digest"] for r in
                map(json.loads, self.good(done).splitlines())}

    def test_results_are_those_of_stock_tensorflow(self):
        programs = HERE / "workloads.py"
        stock = self.workloads(run([sys.executable, programs], STOCK))
        with Daemon() as daemon:
            mets = self.workloads(daemon.run(programs, METS_REQUIRED="1"))
        self.assertEqual(set(stock), set(mets))
        for name, digest in mets.items():
            with self.subTest(name):
                self.assertEqual(digest, stock[name])

    def test_sessions_and_two_logical_gpus_compute_as_stock_tensorflow(self):
        for script in (SESSIONS, TWO_GPUS):
            with self.subTest(script), Daemon() as daemon:
                stock = self.good(run([sys.executable, "-c", script], STOCK))
                self.assertEqual(self.good(daemon.run("-c", script)), stock)

    def test_a_logical_devices_limit_is_kept(self):
        with Daemon() as daemon:
            text = self.good(daemon.run("-c", LIMIT, METS_REQUIRED="1"))
        self.assertRegex(text, "(?s)exhausted: .*METS: the program limits its "
                         "memory .* to 64 MiB itself: 32 MiB are in use")
        self.assertIn("1.0", text)

    def test_tensorflow_leaves_swapping_to_mets(self):
        with Daemon() as daemon:
            text = self.good(daemon.run("-c", LARGER, METS_REQUIRED="1"))
        self.assertEqual(text, "True []")

    def test_out_of_memory_says_what_mets_knows(self):
        with Daemon() as daemon:
            text = self.good(daemon.run("-c", TOO_MUCH, METS_REQUIRED="1"))
        self.assertRegex(text, "(?s)exhausted: .*METS.*GiB")
        self.assertIn("256.0", text)

    def test_memory_info_is_of_the_tensors(self):
        with Daemon() as daemon:
            text = self.good(daemon.run("-c", INFO, METS_REQUIRED="1"))
        self.assertEqual(text.split(), ["True", "True", "True"])

    def test_without_the_daemon_tensorflow_uses_the_gpu_by_itself(self):
        plugin = BIN.parent / "lib" / "libmets_tensorflow.so"
        done = run([sys.executable, "-c", PLACE],
                   {**STOCK, "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(plugin),
                    "METS_RUN_DIR": "/nonexistent"})
        self.assertEqual(self.good(done).split(), ["GPU:0", "16.0"])
        self.assertRegex(done.stderr, "METS: .*; GPU:0 goes on without METS")

    def test_where_the_program_sees_no_gpu_it_says_so_and_uses_the_cpu(self):
        with Daemon() as daemon:
            done = daemon.run("-c", PLACE, CUDA_VISIBLE_DEVICES="")
            self.assertEqual(self.good(done).split(), ["CPU:0", "16.0"])
            self.assertRegex(done.stderr, "METS: .*goes on without METS")
            done = daemon.run("-c", PLACE, CUDA_VISIBLE_DEVICES="",
                              METS_REQUIRED="1")
            self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
