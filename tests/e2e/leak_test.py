"""Many steps of a training that swaps in each of them: what is live, threads,
descriptors and host memory do not grow, in the program and in metsd.

METS_LEAK_STEPS=10000 for the long run.
"""

import json
import os
import pathlib
import sys
import unittest

import harness

MIB = harness.MIB
STEPS = int(os.environ.get("METS_LEAK_STEPS", 300))
SAMPLES = 10
# Until then caches fill: of TensorFlow, of the allocators.
SETTLED = 3
# What host memory may grow by from then on: metsd's log of decisions fills up to
# 5 MiB.
SLACK = 8 * MIB
# TensorFlow starts threads of its pools when it needs them.
THREADS = 4
# A chunk more may be granted once.
DESCRIPTORS = 2

TRAIN = """
import gc, json, os, sys
import tensorflow as tf
import mets.tensorflow

def normal(shape, seed):
    return tf.random.stateless_normal(shape, [seed, 3]) / 30.0

weights = [tf.Variable(normal([512, 512], i)) for i in range(4)]
moments = [tf.Variable(tf.zeros_like(w)) for w in weights]
x = normal([16, 512], 99)

@tf.function
def step():
    with tf.GradientTape() as tape:
        y = x
        for weight in weights:
            y = tf.nn.relu(tf.matmul(y, weight)) + x
        loss = tf.reduce_mean(tf.square(y))
    for w, m, g in zip(weights, moments, tape.gradient(loss, weights)):
        m.assign(0.9 * m + g)
        w.assign_sub(0.01 * m)
    return loss

steps, samples, leaks = map(int, sys.argv[1:])
leaked = []
for i in range(samples):
    for _ in range(steps // samples):
        loss = step()
    if leaks:
        leaked += [bytearray(b"x" * (2 << 20)), os.dup(0), tf.ones([512, 512])]
    gc.collect()
    print(json.dumps({"loss": float(loss),
                      "live": mets.tensorflow.stats().live_bytes,
                      "moved": mets.tensorflow.stats().restored_bytes_total}),
          flush=True)
    sys.stdin.readline()
"""


def use_of(pid):
    """Descriptors, threads, and bytes of its own (not of the pool's chunks)."""
    status = dict(line.split(":", 1) for line in pathlib.Path(
        f"/proc/{pid}/status").read_text().splitlines())
    return {"descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "threads": int(status["Threads"]),
            "bytes": int(status["RssAnon"].split()[0]) << 10}


def grown(found):
    """What was more at the end than when it had settled."""
    first, last = found[SETTLED], found[-1]
    more = [f"{who} {what}" for who in ("job", "metsd")
            for what, slack in (("descriptors", DESCRIPTORS),
                                ("threads", THREADS))
            if last[who][what] > first[who][what] + slack]
    more += [f"{who} bytes" for who in ("job", "metsd")
             if last[who]["bytes"] > first[who]["bytes"] + SLACK]
    if last["program"]["live"] > first["program"]["live"]:
        more.append("live buffers")
    return more


class Leak(unittest.TestCase):
    def samples(self, daemon, steps, limit, leaks):
        """[{program, job, metsd}], one every some steps."""
        job = daemon.run(
            "leak", [sys.executable, "-c", TRAIN, steps, SAMPLES, int(leaks)],
            "--limit", limit, METS_REQUIRED="1")
        found = []
        for i in range(SAMPLES):
            def lines():
                return [json.loads(line) for line in
                        harness.text_of(job).splitlines()
                        if line.startswith('{"loss"')]

            harness.wait_for(
                lambda: len(lines()) > i or job.poll() is not None,
                3600, f"sample {i}")
            self.assertIsNone(job.poll(), harness.text_of(job)[-3000:])
            found.append({"program": lines()[i], "job": use_of(job.pid),
                          "metsd": use_of(daemon.process.pid)})
            print(json.dumps(found[-1]), flush=True)
            job.stdin.write("\n")
            job.stdin.flush()
        harness.finish(job)
        return found

    def test_nothing_grows(self):
        with harness.Daemon(64 * MIB) as daemon:
            found = self.samples(daemon, STEPS, "8MiB", leaks=False)
        moved = (found[-1]["program"]["moved"] -
                 found[SETTLED]["program"]["moved"])
        self.assertGreater(moved, STEPS // 2 * MIB)
        self.assertEqual(grown(found), [])

    def test_a_leak_is_found(self):
        with harness.Daemon(64 * MIB) as daemon:
            found = self.samples(daemon, 5 * SAMPLES, "32MiB", leaks=True)
        self.assertEqual(
            {"job descriptors", "job bytes", "live buffers"} - set(grown(found)),
            set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
