"""Many kinds of TensorFlow programs give the bits of stock TensorFlow: where every
buffer that nothing uses is unreadable (and miss no access then), and alone in half
of their memory.

METS_SUITE="NAME ...": in half of their memory run these programs, not six.
"""

import json
import os
import re
import sys
import unittest

import harness

PROGRAMS = harness.ROOT / "tests" / "tf_allocator" / "workloads.py"
PHANTOM = "METS_PHANTOM_EVICTION"
POOL = 1 << 30
# Looks at a tensor, by a view that it has kept, after ops have used it.
LOOKS_ANYWAY = {"views"}
SIX = ["xla", "while_loop", "recomputed_gradients", "session_training",
       "keras_embedding", "two_threads"]

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


def show(name, memory, *found):
    print(name, f"in {memory >> 20} MiB;", *(
        f"peak {r['peak_live_bytes'] >> 20} MiB, moved "
        f"{r['moved_bytes'] >> 20} MiB, {r['seconds']} s;" for r in found),
          flush=True)


class Programs:
    """A process that runs programs when it is told to."""

    def __init__(self, daemon, job):
        self._daemon, self._job = daemon, job
        self._process = daemon.run(job, [sys.executable, PROGRAMS, "--ask"])
        self._wait("ready")
        self._seen = 0

    def _wait(self, text, start=0):
        harness.wait_for(
            lambda: text in harness.text_of(self._process)[start:]
            or self._process.poll() is not None, 600, f"{self._job}: {text}")

    def limit(self, size):
        self._daemon.ctl("limit", self._job, str(size))

    def begin(self, name):
        self._seen = len(harness.text_of(self._process))
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()

    def result(self, name):
        self._wait(f'{{"name": "{name}"', self._seen)
        text = harness.text_of(self._process)[self._seen:]
        if name not in results(text):
            raise AssertionError(f"{name} failed: {text[-4000:]}")
        return results(text)[name]

    def end(self):
        self._process.stdin.close()
        harness.finish(self._process)


class Accesses(unittest.TestCase):
    def test_a_missed_access_is_served_and_reported(self):
        with harness.Daemon(POOL) as daemon:
            job = daemon.run("misses", [sys.executable, "-c", MISSES],
                             **{PHANTOM: "4KiB"})
            harness.finish(job)
        text = harness.text_of(job)
        self.assertIn("True\n", text)
        self.assertIn("and 1 accesses were missed", text)
        self.assertRegex(text, "1 missed: read of a buffer of 1 MiB, in no op "
                         "of thread '.*', last used by AddV2")

    def test_what_cannot_be_brought_back_to_be_looked_at_is_an_error(self):
        with harness.Daemon(POOL) as daemon:
            job = daemon.run("looks", [sys.executable, "-c", LOOKS_AT_TOO_MUCH],
                             "--limit", "8MiB", METS_WAIT="1s")
            harness.finish(job, timeout=120)
        text = harness.text_of(job)
        self.assertIn("exhausted:", text)
        self.assertIn("the job is at its limit of 8 MiB", text)
        self.assertIn("True\n12.0\n", text)


class Suite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = ""
        with harness.Daemon(POOL) as daemon:
            def run(job, *arguments, **env):
                process = daemon.run(
                    job, [sys.executable, PROGRAMS, *arguments], **env)
                harness.finish(process, timeout=1200)
                return harness.text_of(process)

            cls.stock = results(run("stock", METS_DISABLE="1"))
            # Where tensors are small, small ones count as large, too.
            cls.text += run("small", "--small", **{PHANTOM: "4KiB"})
            cls.text += run("large", "--large", **{PHANTOM: "1MiB"})
        cls.phantom = results(cls.text)
        names = os.environ.get("METS_SUITE", "").split()
        cls.programs = names or SIX

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
        """Each in a process of its own, first with all the memory it wants."""
        with harness.Daemon(POOL) as daemon:
            for name in self.programs:
                with self.subTest(name):
                    programs = Programs(daemon, name)
                    programs.begin(name)
                    full = programs.result(name)
                    chunks = full["peak_live_bytes"] // 2 >> 16
                    programs.limit(chunks << 16)
                    programs.begin(name)
                    less = programs.result(name)
                    programs.end()
                    show(name, chunks << 16, full, less)
                    self.same(full)
                    self.same(less)
                    self.assertGreater(less["moved_bytes"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
