"""Many kinds of TensorFlow programs give the bits of stock TensorFlow: where every
buffer that nothing uses is unreadable (and miss no access then), alone in half of
their memory, and two at once in three quarters of what both need.

METS_SUITE="NAME ...": in half of their memory run these programs, not all.
METS_SUITE_PAIRS="NAME+NAME ...", or "all": at once run these, not five pairs.
"""

import concurrent.futures
import itertools
import json
import os
import re
import sys
import unittest

import harness

PROGRAMS = harness.ROOT / "tests" / "tf_allocator" / "workloads.py"
sys.path.insert(0, str(PROGRAMS.parent))
import ready_python

PHANTOM = "METS_PHANTOM_EVICTION"
POOL = 1 << 30
# Looks at a tensor, by a view that it has kept, after ops have used it.
LOOKS_ANYWAY = {"views"}
HALF = ["graph", "while_loop", "xla", "recomputed_gradients", "session_training",
        "tables_and_optionals", "recurrent_training", "keras_attention",
        "keras_subclassed", "keras_embedding", "keras_recurrent",
        "mixed_precision", "gradient_accumulation", "optimizers",
        "evaluation_and_early_stopping", "two_models", "generator_input",
        "served_model", "two_threads"]
PAIRS = ["keras_embedding+gradient_accumulation", "xla+generator_input",
         "session_training+mixed_precision", "while_loop+served_model",
         "recurrent_training+keras_recurrent"]

MISSES = """
import numpy as np, tensorflow as tf

@tf.function
def make(seed):
    return tf.random.stateless_normal([512, 512], [seed, 2])

x = make(1)
view = memoryview(x)
y = make(2) + x
print(np.array_equal(np.asarray(view), x.numpy()))
"""

FEEDS_WHAT_IT_GOT = """
import tempfile
import numpy as np, tensorflow as tf
v1 = tf.compat.v1
with tf.Graph().as_default():
    x = v1.placeholder(tf.float32, [512, 512])
    y = tf.tanh(x) + 0.1
    with v1.Session() as session:
        got = [np.ones([512, 512], np.float32)]
        for _ in range(3):
            got.append(session.run(y, {x: got[-1]}))
# The kernel reads them where they are.
with tempfile.TemporaryFile() as file:
    for array in got:
        array.tofile(file)
    file.seek(0)
    print(file.read() == b"".join(array.tobytes() for array in got))
"""

LOOKS_AT_TOO_MUCH = """
import tensorflow as tf
weights = [tf.Variable(tf.ones([512, 512])) for _ in range(12)]
views = []
try:
    for weight in weights:
        views.append(memoryview(weight.read_value()))
except tf.errors.ResourceExhaustedError as error:
    print("exhausted:", error.message)
print(sum(view[0, 0] for view in views) == len(views) < len(weights))
del views
print(sum(float(weight.numpy()[0, 0]) for weight in weights))
"""


def results(text):
    found = [json.loads(line) for line in text.splitlines()
             if line.startswith('{"name"')]
    return {result["name"]: result for result in found}


def show(result, memory):
    print(result["name"], f"in {memory / 2**20:.1f} MiB: moved "
          f"{result['moved_bytes'] >> 20} MiB, {result['seconds']} s", flush=True)


class Programs:
    """A process that runs programs when it is told to."""

    def __init__(self, daemon, job):
        self._daemon, self._job = daemon, job
        self._process = daemon.run(job, [sys.executable, PROGRAMS, "--ask"])
        self._seen = 0

    def wait_until_ready(self):
        self._wait("ready\n")

    def _wait(self, text):
        """What it has printed since it was told, once that has `text`."""
        def printed():
            return harness.text_of(self._process)[self._seen:]

        harness.wait_for(
            lambda: text in printed() or self._process.poll() is not None,
            300, f"{self._job}: {text}")
        return printed()

    def limit(self, size):
        self._daemon.ctl("limit", self._job, str(size))

    def begin(self, name):
        self._seen = len(harness.text_of(self._process))
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()

    def result(self, name):
        text = self._wait(f'{{"name": "{name}"')
        if name not in results(text):
            raise AssertionError(f"{name} failed: {text[-4000:]}")
        return results(text)[name]

    def end(self):
        self._process.stdin.close()
        harness.finish(self._process)

    def kill(self):
        self._process.kill()
        self._process.wait()


RUN_PROGRAMS = f"""
import sys
sys.path.insert(0, {str(PROGRAMS.parent)!r})
import workloads
workloads.main()
"""


def setUpModule():
    """Three processes that start programs: without METS, and two with it."""
    global stock, pythons
    stock = ready_python.ReadyPython(METS_DISABLE="1")
    pythons = [ready_python.ReadyPython(
        TF_PLUGGABLE_DEVICE_LIBRARY_PATH=str(
            harness.BUILD / "lib" / "libmets_tensorflow.so"),
        METS_REQUIRED="1") for _ in range(2)]
    for python in stock, *pythons:
        unittest.addModuleCleanup(python.end)


def run(daemon, job, python, text, *arguments, **env):
    """What a program prints."""
    done = python.run(text, *arguments, METS_RUN_DIR=daemon.run_dir, METS_JOB=job,
                      **env)
    if done.returncode:
        raise AssertionError(f"ended with {done.returncode}:\n{done.stderr}")
    return done.stdout + done.stderr


def run_all(*arguments, **env):
    """What a process that runs many programs prints."""
    with harness.Daemon(POOL) as daemon:
        return run(daemon, "all", *arguments, **env)


def run_alone(memory_of):
    """The results, or errors, of programs one after the other, each in so many
    bytes beside those that the ones before have left held."""
    found, programs, held = {}, None, 0
    with harness.Daemon(POOL) as daemon:
        for name, memory in memory_of:
            if programs is None:
                programs = Programs(daemon, "alone")
                programs.wait_until_ready()
                held = 0
            programs.limit(memory + held)
            programs.begin(name)
            try:
                found[name] = programs.result(name)
                held = found[name]["held_bytes"]
                show(found[name], memory)
            except AssertionError as error:
                found[name] = error
                programs.kill()
                programs = None
        if programs is not None:
            programs.end()
    return found


def run_together(names, pool):
    """The results of programs that begin at once, each in a process of its own."""
    with harness.Daemon(pool) as daemon, \
            concurrent.futures.ThreadPoolExecutor() as at_once:
        texts = at_once.map(
            lambda name, python: run(daemon, name, python, RUN_PROGRAMS, name),
            names, pythons)
        found = [results(text)[name] for name, text in zip(names, texts)]
    for result in found:
        show(result, pool)
    return found


class Accesses(unittest.TestCase):
    def test_a_missed_access_is_served_and_reported(self):
        with harness.Daemon(POOL) as daemon:
            text = run(daemon, "misses", pythons[0], MISSES, **{PHANTOM: "4KiB"})
        self.assertIn("True\n", text)
        self.assertIn("and 1 accesses were missed", text)
        self.assertRegex(text, "1 missed: read of a buffer of 1 MiB, in no op "
                         "of thread '.*', last used by AddV2")

    def test_arrays_that_are_fed_again_stay_where_they_are(self):
        with harness.Daemon(POOL) as daemon:
            text = run(daemon, "feeds", pythons[0], FEEDS_WHAT_IT_GOT,
                       **{PHANTOM: "4KiB"})
        self.assertIn("True\n", text)
        self.assertIn("and 0 accesses were missed", text)

    def test_what_cannot_be_brought_back_to_be_looked_at_is_an_error(self):
        with harness.Daemon(POOL) as daemon:
            text = run(daemon, "looks", pythons[0], LOOKS_AT_TOO_MUCH,
                       METS_LIMIT="8MiB", METS_WAIT="1s")
        self.assertIn("exhausted:", text)
        self.assertIn("the job is at its limit of 8 MiB", text)
        self.assertIn("True\n12.0\n", text)


class Suite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Where tensors are small, small ones count as large, too.
        with concurrent.futures.ThreadPoolExecutor() as at_once:
            alone, *phantom = [
                at_once.submit(run_all, stock, RUN_PROGRAMS),
                at_once.submit(run_all, pythons[0], RUN_PROGRAMS, "--small",
                               **{PHANTOM: "4KiB"}),
                at_once.submit(run_all, pythons[1], RUN_PROGRAMS, "--large",
                               **{PHANTOM: "1MiB"})]
            cls.stock = results(alone.result())
            cls.text = "".join(text.result() for text in phantom)
        cls.phantom = results(cls.text)

    def part(self, quarters, *names):
        """Of the most that they have live, in whole chunks."""
        peaks = sum(self.phantom[name]["peak_live_bytes"] for name in names)
        return peaks * quarters // 4 >> 16 << 16

    def same(self, result):
        name = result["name"]
        self.assertEqual(result["digest"], self.stock[name]["digest"], name)

    def test_no_access_is_missed(self):
        self.assertEqual(set(self.phantom), set(self.stock))
        for name, result in self.phantom.items():
            with self.subTest(name):
                self.same(result)
                if name not in LOOKS_ANYWAY:
                    self.assertEqual(result["unobserved_accesses_total"], 0)
        said = re.findall(r"phantom eviction: buffers were unreadable (\d+) "
                          r"times, and (\d+) accesses were missed", self.text)
        self.assertEqual(len(said), 2)
        self.assertGreater(sum(int(times) for times, _ in said), 10000)
        self.assertEqual(sum(int(missed) for _, missed in said), sum(
            self.phantom[name]["unobserved_accesses_total"]
            for name in LOOKS_ANYWAY))

    def test_in_half_of_their_memory_they_compute_the_same(self):
        names = os.environ.get("METS_SUITE", "").split() or HALF
        memory = [(name, self.part(2, name)) for name in names]
        with concurrent.futures.ThreadPoolExecutor() as at_once:
            halves = list(at_once.map(run_alone, [memory[::2], memory[1::2]]))
        for name, result in {**halves[0], **halves[1]}.items():
            with self.subTest(name):
                if isinstance(result, AssertionError):
                    raise result
                self.same(result)
                self.assertGreater(result["moved_bytes"], 0)

    def test_two_at_once_in_less_than_both_need_compute_the_same(self):
        pairs = os.environ.get("METS_SUITE_PAIRS", "").split() or PAIRS
        if pairs == ["all"]:
            pairs = map("+".join, itertools.combinations(HALF, 2))
        for pair in pairs:
            with self.subTest(pair):
                names = pair.split("+")
                for result in run_together(names, self.part(3, *names)):
                    self.same(result)


if __name__ == "__main__":
    unittest.main(verbosity=2)
