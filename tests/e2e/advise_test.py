"""mets.tensorflow.advise: what it measures, what it chooses, what that does."""

import json
import os
import subprocess
import sys
import unittest

import harness

MIB = harness.MIB

SETUP = """
import json
import tensorflow as tf
import mets.tensorflow
mets.tensorflow.enable(required=True)
tf.config.experimental.enable_op_determinism()
layers = tf.keras.layers

def block(name):
    return tf.keras.Sequential([layers.Input([256]),
                                layers.Dense(1024, "gelu"),
                                layers.Dense(256)], name=name)

def make():
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.Sequential(
        [layers.Input([256]), *(block(f"block{i}") for i in range(4)),
         layers.Dropout(0.1, name="dropout"), layers.BatchNormalization(name="norm"),
         layers.Dense(10, name="out")])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(True),
                  jit_compile=False)
    return model

x = tf.random.stateless_normal([1024, 256], [1, 2])
y = tf.range(1024) % 10
"""

ADVISE = SETUP + """
model = make()
before = [w.numpy().tobytes() for w in model.weights]
result = {}
for name, memory, speed in [("fits", "1GiB", 1e9), ("slow", 1, 1e6),
                            ("fast", 1, 1e15), ("some", None, 1e6),
                            ("measured", 1, None)]:
    if memory is None:  # What one block's inside is more than enough for.
        memory = found.peak_bytes - (4 << 20)
    found = mets.tensorflow.advise(model, (x, y), memory, speed)
    result[name] = {l.name: [l.choice, l.kept_bytes, l.output_bytes,
                             l.recomputable] for l in found.layers}
    result[name + "_peak"] = found.peak_bytes
    result[name + "_speed"] = found.bytes_per_second
print(found)
result["unchanged"] = before == [w.numpy().tobytes() for w in model.weights]
result["errors"] = []
for arguments in [((x, y),), ((x, y, y), 1), ((x, y), 1, 0),
                  (tf.data.Dataset.from_tensors((x, y)), 1)]:
    try:
        mets.tensorflow.advise(model, *arguments)
    except ValueError as error:
        result["errors"].append(str(error))
print(json.dumps(result))
"""

APPLY = SETUP + """
result = []
for recompute in (False, True):
    model = make()
    if recompute:
        found = mets.tensorflow.advise(model, (x, y), 1, 1e6)
        names = found.apply()
    losses = model.fit(x, y, batch_size=1024, epochs=1, verbose=0).history["loss"]
    tf.config.experimental.reset_memory_stats("CPU:0")
    losses += model.fit(x, y, batch_size=1024, epochs=5, verbose=0).history["loss"]
    result.append({"peak": mets.tensorflow.stats().peak_live_bytes,
                   "losses": losses,
                   "state": [w.numpy().tobytes().hex() for w in model.weights]})
    del model
print(json.dumps({"names": names,
                  "peaks": [r["peak"] for r in result],
                  "same": result[0]["losses"] == result[1]["losses"]
                  and result[0]["state"] == result[1]["state"]}))
"""


def run(daemon, script):
    # With AVX-512 oneDNN joins a product and the gelu behind it, with other last
    # bits, where nothing else needs the product: only where it is recomputed.
    done = subprocess.run(
        [sys.executable, "-c", script], timeout=600, text=True, check=False,
        env={**os.environ, "METS_RUN_DIR": daemon.run_dir, "METS_LIMIT": "",
             "TF_ENABLE_ONEDNN_OPTS": "0",
             "PYTHONPATH": str(harness.BUILD / "python"),
             "METS_LIBRARY_DIR": str(harness.BUILD / "lib")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise AssertionError(done.stderr[-3000:])
    print(done.stdout)
    return json.loads(done.stdout.splitlines()[-1])


class Advise(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with harness.Daemon(512 * MIB) as daemon:
            cls.found = run(daemon, ADVISE)
            cls.applied = run(daemon, APPLY)

    def choices(self, name):
        return {layer: found[0] for layer, found in self.found[name].items()}

    def test_it_measures_what_layers_keep(self):
        for layer in ("block0", "block3"):
            _, kept, output, again = self.found["fits"][layer]
            # Of gelu's inside at least a tensor of 4 MiB; the output, 1 MiB.
            self.assertGreater(kept, 5 * MIB)
            self.assertEqual(output, MIB)
            self.assertTrue(again)
        self.assertGreater(self.found["fits_peak"], sum(
            kept for _, kept, _, _ in self.found["fits"].values()))

    def test_what_draws_random_numbers_or_has_state_is_not_recomputed(self):
        again = {layer: found[3] for layer, found in self.found["fits"].items()}
        self.assertEqual([layer for layer in again if not again[layer]],
                         ["dropout", "norm"])

    def test_it_chooses_by_time_and_bytes(self):
        self.assertEqual(set(self.choices("fits").values()), {"keep"})
        self.assertEqual(self.choices("slow")["block0"], "recompute")
        self.assertEqual(self.choices("slow")["dropout"], "swap")
        self.assertNotIn("recompute", self.choices("fast").values())
        self.assertEqual(self.choices("fast")["block0"], "swap")
        self.assertEqual(
            sorted(self.choices("some").values()), ["keep"] * 6 + ["recompute"])
        self.assertGreater(self.found["measured_speed"], 1e8)

    def test_it_changes_nothing_by_itself(self):
        self.assertTrue(self.found["unchanged"])

    def test_it_asks_for_what_it_cannot_find_out_and_names_what_is_wrong(self):
        for error, text in zip(
                self.found["errors"],
                ["how much memory", "the batch has 3 parts",
                 "bytes_per_second is 0", "the batch is a dataset"],
                strict=True):
            self.assertIn(text, error)

    def test_what_it_applies_saves_memory_and_changes_no_bit(self):
        self.assertEqual(self.applied["names"],
                         [f"block{i}" for i in range(4)])
        stock, recomputed = self.applied["peaks"]
        self.assertLess(recomputed, stock - 8 * MIB)
        self.assertTrue(self.applied["same"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
