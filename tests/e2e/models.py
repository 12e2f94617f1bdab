"""Keras trainings that give the same bits every time.

    python models.py cnn|mlp|lstm --steps N [--out FILE] [--every K]

trains on scikit-learn's digits, enlarged to 64 x 64, prints a line every K
steps, and writes to FILE (JSON): model, steps, final_loss, final_loss_hex (the
exact value), weights_sha256, seconds and cpu_seconds (imports and building
excluded), and mets: the fields of mets_stats, or null without METS.

The sizes: most tensors have a MiB and more; the most that is live at once is a
few hundred MiB; a step takes some tenths of a second of one core.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import pathlib
import struct
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
DIGITS = importlib.metadata.distribution("scikit-learn").locate_file(
    "sklearn/datasets/data/digits.csv.gz")
# Importing it, as Keras does where it is, takes longer than some trainings.
sys.modules.update(sklearn=None, matplotlib=None)

import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]
                       / "tf_allocator" / "python"))
import mets_stats

SEED = 20
SIDE = 64
BATCH = {"cnn": 64, "mlp": 64, "lstm": 128}
layers = tf.keras.layers


def digits():
    """(1797, 64, 64, 1) pictures and their labels."""
    data = np.loadtxt(DIGITS, delimiter=",")
    small = data[:, :-1].reshape(-1, 8, 8).astype(np.float32) / 16.0
    big = np.repeat(np.repeat(small, SIDE // 8, axis=1), SIDE // 8, axis=2)
    return big[..., np.newaxis], data[:, -1].astype(np.int64)


def cnn():
    """Much memory for little work: wide where the pictures are large only
    behind a single channel."""
    return [
        layers.Conv2D(32, 3, padding="same"),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.AveragePooling2D(2),
        layers.Conv2D(32, 3, 2, padding="same", activation="relu"),
        layers.Conv2D(64, 3, 2, padding="same", activation="relu"),
        layers.Flatten(),
        layers.Dense(256, activation="relu"),
        layers.Dense(10),
    ]


def mlp():
    return [
        layers.Flatten(),
        layers.Dense(1024, activation="relu"),
        layers.Dense(2048, activation="relu"),
        layers.Dense(1024, activation="relu"),
        layers.Dense(10),
    ]


def lstm():
    """A picture's rows are the steps of the sequence."""
    return [
        layers.Reshape([SIDE, SIDE]),
        layers.LSTM(160, return_sequences=True),
        layers.LSTM(160),
        layers.Dense(10),
    ]


def build(name):
    model = tf.keras.Sequential([layers.Input([SIDE, SIDE, 1])] +
                                {"cnn": cnn, "mlp": mlp, "lstm": lstm}[name]())
    model.compile(
        optimizer=tf.keras.optimizers.Adam(1e-3),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False)
    return model


class Progress(tf.keras.callbacks.Callback):
    def __init__(self, steps, every):
        super().__init__()
        self._steps, self._every = steps, every
        self.loss = None

    def on_train_batch_end(self, batch, logs=None):
        self.loss = logs["loss"]
        if (batch + 1) % self._every == 0 or batch + 1 == self._steps:
            print(f"step {batch + 1}/{self._steps} loss {self.loss:.6f}",
                  flush=True)


def batches(name):
    x, y = digits()
    data = tf.data.Dataset.from_tensor_slices((x, y))
    return data.shuffle(len(y), seed=SEED).repeat().batch(BATCH[name])


def train(name, steps, every):
    tf.keras.utils.set_random_seed(SEED)
    model = build(name)
    data = batches(name)
    progress = Progress(steps, every)
    start, cpu = time.monotonic(), time.process_time()
    model.fit(data, steps_per_epoch=steps, epochs=1, verbose=0, shuffle=False,
              callbacks=[progress])
    seconds = time.monotonic() - start
    cpu_seconds = time.process_time() - cpu
    sha = hashlib.sha256()
    for weights in model.get_weights():
        sha.update(np.ascontiguousarray(weights).tobytes())
    loss = float(progress.loss)
    return {
        "model": name,
        "steps": steps,
        "final_loss": loss,
        "final_loss_hex": struct.pack(">d", loss).hex(),
        "weights_sha256": sha.hexdigest(),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "mets": mets_stats.read(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", choices=["cnn", "mlp", "lstm"])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--out")
    args = parser.parse_args()
    tf.config.experimental.enable_op_determinism()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    result = train(args.model, args.steps, args.every)
    mets = result["mets"]
    if mets is not None:
        print("mets " + ", ".join(
            f"{key} {mets[key] >> 20} MiB"
            for key in ("peak_live_bytes", "evicted_bytes_total",
                        "restored_bytes_total")), flush=True)
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
