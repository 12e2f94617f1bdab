"""The plug-in in the stock TensorFlow, on the fake libmets.

    python tf_plugin_test.py PLUGIN FAKE_LIBMETS

Every buffer that no running op has named is evicted after every op, so that an
access that was not announced is seen; the results must be those of TensorFlow
as it comes, bit by bit.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import ready_python

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN, FAKE = sys.argv[1:3]
# Looks at a tensor, by a view that it has kept, after ops have used it.
LOOKS_ANYWAY = {"views"}


for variable in ("METS_DISABLE", "METS_REQUIRED"):
    os.environ.pop(variable, None)
os.environ.update(TF_PLUGGABLE_DEVICE_LIBRARY_PATH=PLUGIN, METS_LIBRARY=FAKE,
                  TF_CPP_MIN_LOG_LEVEL="2")


def run(command, **env):
    """Ends with (exit status, standard output, standard error)."""
    done = subprocess.run([sys.executable, *command], timeout=900,
                          env={**os.environ, **env}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


def workloads(*names, **env):
    code, out, err = run([str(HERE / "workloads.py"), *names], **env)
    if code:
        raise AssertionError(f"ended with {code}:\n{err[-4000:]}")
    return {r["name"]: r for r in map(json.loads, out.splitlines())}


class Results(unittest.TestCase):
    def test_they_are_the_same_when_everything_leaves_after_every_op(self):
        stock = workloads("--small", METS_DISABLE="1")
        mets = workloads("--small", FAKE_METS_EVICT="1",
                         FAKE_METS_THRESHOLD="4096")
        self.assertEqual(set(stock), set(mets))
        for name, result in mets.items():
            with self.subTest(name):
                self.assertEqual(result["digest"], stock[name]["digest"])
                self.assertGreater(result["evicted_bytes_total"], 0)
                if name not in LOOKS_ANYWAY:
                    self.assertEqual(result["unobserved_accesses_total"], 0)


SMALL = """
import tensorflow as tf
print(float(tf.reduce_sum(tf.ones([1024, 1024]))))
"""

TOO_MUCH = """
import tensorflow as tf
try:
    print(tf.reduce_sum(tf.random.uniform([4096, 1024])))
except tf.errors.ResourceExhaustedError as error:
    print("exhausted:", error.message)
print(float(tf.reduce_sum(tf.ones([16, 16]))))
"""

NUMBERS = """
import sys
sys.path.insert(0, %r)
import tensorflow as tf, mets_stats
def mib(key):
    return mets_stats.read()[key] >> 20
""" % str(HERE.parents[1] / "tf_allocator" / "python")

STATS = NUMBERS + """
x = tf.ones([1024, 1024])
assert mib("live_bytes") >= 4
print(tf.config.experimental.get_memory_info("CPU:0")["current"] >= 4 << 20)
"""

KEPT = NUMBERS + """
queue = tf.queue.FIFOQueue(1, tf.float32)
w = tf.Variable(tf.zeros([1024, 1024]))
w.assign_add(tf.ones([1024, 1024]))
held = [mib("held_bytes")]
queue.enqueue(w)
other = tf.Variable(w * 2)  # An op names it that the queue has, too.
other.assign_add(other)
held.append(mib("held_bytes"))
queue.dequeue()
w.assign_add(other)
held.append(mib("held_bytes"))
print(*held, float(w[0, 0]))
"""

LOOKED_AT = NUMBERS + """
weights = [tf.Variable(tf.ones([1024, 1024]) * i) for i in range(8)]
after = tf.function(lambda x: x + 1)
before = mib("held_bytes")
sums = [float(w.numpy().mean()) for w in weights]
print(sum(sums), mib("held_bytes") - before, end=" ")
after(1.0)
print(mib("held_bytes") - before, end="; ")
before = mib("held_bytes")
views = [memoryview(w.read_value()) for w in weights]
print(sum(view[0, 0] for view in views), mib("held_bytes") - before, end=" ")
after(1.0)
print(mib("held_bytes") - before, end=" ")
del views
for _ in range(2):
    after(1.0)
print(mib("held_bytes") - before)
"""

FORK = """
import os, sys
import tensorflow as tf
x = tf.ones([1024, 1024])
child = os.fork()
if child == 0:
    import numpy
    numpy.ones(1 << 20).sum()
    os._exit(0)
_, status = os.waitpid(child, 0)
print(status, float(tf.reduce_sum(x)))
"""

THREADS = """
import threading
import tensorflow as tf
tf.config.threading.set_inter_op_parallelism_threads(4)
sums = {}
def work(i):
    w = tf.Variable(tf.ones([256, 256]) * (i + 1))
    @tf.function
    def step():
        w.assign(w * 0.5 + tf.matmul(w, w) * 1e-3)
        return tf.reduce_sum(w)
    for _ in range(20):
        sums[i] = float(step())
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sorted(sums.items()))
"""


class Behaviour(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = ready_python.ReadyPython()
        cls.addClassCleanup(cls.python.end)

    def script(self, text, **env):
        done = self.python.run(text, **env)
        return done.returncode, done.stdout, done.stderr

    def test_a_full_device_raises_with_the_text_of_mets(self):
        code, out, err = self.script(TOO_MUCH, FAKE_METS_POOL=str(8 << 20))
        self.assertEqual(code, 0, err)
        self.assertIn("exhausted:", out)
        self.assertIn("fake pool full: asked for 16777216", out)
        self.assertIn("256.0", out)

    def test_without_a_daemon_it_goes_on_and_says_so_once(self):
        code, out, err = self.script(SMALL, FAKE_METS_OPEN="no metsd here")
        self.assertEqual((code, out.strip()), (0, "1048576.0"), err)
        self.assertEqual(err.count("no metsd here"), 1)
        self.assertIn("goes on without METS", err)

    def test_without_a_daemon_it_stops_when_mets_is_required(self):
        code, _, err = self.script(SMALL, FAKE_METS_OPEN="no metsd here",
                                   METS_REQUIRED="1")
        self.assertNotEqual(code, 0)
        self.assertIn("no metsd here (METS_REQUIRED is set)", err)

    def test_without_libmets_it_goes_on(self):
        code, out, err = self.script(SMALL, METS_LIBRARY="/nonexistent.so")
        self.assertEqual((code, out.strip()), (0, "1048576.0"), err)
        self.assertIn("cannot open libmets", err)

    def test_a_gpu_device_is_refused(self):
        _, out, err = self.script(SMALL, FAKE_METS_KIND="cuda")
        self.assertEqual(out.strip(), "1048576.0")
        self.assertIn("needs a host device", err)

    def test_disabled_it_registers_nothing(self):
        code, out, err = run(["-c", SMALL], METS_DISABLE="1",
                             METS_LIBRARY="/nonexistent.so")
        self.assertEqual((code, out.strip()), (0, "1048576.0"), err)
        self.assertNotIn("METS", err)

    def test_another_tensorflow_is_told_in_one_line(self):
        code, _, err = run(["-c", f"import ctypes\nctypes.CDLL({PLUGIN!r})"])
        self.assertEqual(code, 0)
        self.assertIn("no TensorFlow is loaded", err)

    def test_python_reads_the_numbers(self):
        code, out, err = self.script(STATS)
        self.assertEqual((code, out.strip()), (0, "True"), err)

    def test_what_a_queue_keeps_is_held_while_it_does(self):
        code, out, err = self.script(KEPT)
        self.assertEqual((code, out.strip()), (0, "0 4 0 5.0"), err)

    def test_variables_are_held_while_python_has_views_of_them(self):
        code, out, err = self.script(LOOKED_AT, FAKE_METS_EVICT="1")
        self.assertEqual((code, out.strip()), (0, "28.0 4 0; 28.0 32 32 0"), err)

    def test_a_forked_child_does_not_disturb(self):
        code, out, err = self.script(FORK)
        self.assertEqual((code, out.strip()), (0, "0 1048576.0"), err)

    def test_threads_run_at_once(self):
        stock = run(["-c", THREADS], METS_DISABLE="1")
        mets = self.script(THREADS, FAKE_METS_EVICT="1",
                           FAKE_METS_THRESHOLD="4096")
        self.assertEqual(mets[0], 0, mets[2])
        self.assertEqual(mets[1], stock[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
