#!/usr/bin/env python3
"""Records the traces mets-NAME.csv.xz from Keras trainings under METS.

    build/venv/bin/python figures/traces/record.py [NAME...] [--out FOLDER]

starts a metsd on a host device, and for each model (all of them without NAME)
trains, warms up, records some whole steps with `metsctl record`, and prints a
line with what the trace has. Needs the plug-in built (deploy/quickstart does
that) and about 6 GiB of memory. The data are random numbers of a fixed seed:
only shapes matter to memory. Ops run one at a time (inter-op threads: 1), so
that their order is the same in every step.
"""

import argparse
import collections
import contextlib
import lzma
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "figures"))
import live

BUILD = pathlib.Path(os.environ.get("METS_BUILD_DIR", ROOT / "build"))
SEED = 20
WARM_UP, STEPS = 2, 4
AHEAD = 4  # More batches than steps: the input pipeline works ahead.
MIB = 1 << 20

# ---- models: each gives (model, inputs, targets, batch size) -----------------


def cnn(keras, numpy):
    """VGG-like, pictures of 64 x 64, batches of 128."""
    layers, rows = keras.layers, 128
    stack = [layers.Input([64, 64, 3])]
    for channels in (32, 32, "pool", 64, 64, "pool", 128, 128, "pool"):
        if channels == "pool":
            stack.append(layers.MaxPooling2D())
        else:
            stack += [layers.Conv2D(channels, 3, padding="same"),
                      layers.BatchNormalization(), layers.ReLU()]
    stack += [layers.Flatten(), layers.Dense(512, activation="relu"),
              layers.Dropout(0.5), layers.Dense(100)]
    return (keras.Sequential(stack), numpy.normal([rows, 64, 64, 3]),
            numpy.labels(rows, 100), rows)


def resnet(keras, numpy):
    """ResNet-20 for CIFAR, batches of 384."""
    layers, rows = keras.layers, 384

    def conv(x, channels, stride, size=3):
        x = layers.Conv2D(channels, size, stride, padding="same",
                          use_bias=False)(x)
        return layers.BatchNormalization()(x)

    inputs = layers.Input([32, 32, 3])
    x = layers.ReLU()(conv(inputs, 16, 1))
    for channels in (16, 32, 64):
        for block in range(3):
            stride = 2 if channels > 16 and block == 0 else 1
            y = layers.ReLU()(conv(x, channels, stride))
            y = conv(y, channels, 1)
            if stride == 2:
                x = conv(x, channels, stride, 1)
            x = layers.ReLU()(layers.Add()([x, y]))
    outputs = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    return (keras.Model(inputs, outputs), numpy.normal([rows, 32, 32, 3]),
            numpy.labels(rows, 10), rows)


def lstm(keras, numpy):
    """Two layers of 512 units, 32 time steps, batches of 512."""
    layers, rows = keras.layers, 512
    model = keras.Sequential([
        layers.Input([32, 64]),
        layers.LSTM(512, return_sequences=True),
        layers.LSTM(512),
        layers.Dense(50),
    ])
    return model, numpy.normal([rows, 32, 64]), numpy.labels(rows, 50), rows


def attention(keras, numpy):
    """Transformer encoder: 4 layers, width 256, 4 heads, 64 x 128 tokens."""
    layers, rows, length, width, words = keras.layers, 64, 128, 256, 8000
    inputs = layers.Input([length], dtype="int32")
    x = layers.Embedding(words, width)(inputs)
    for _ in range(4):
        y = layers.LayerNormalization()(x)
        y = layers.MultiHeadAttention(4, width // 4, dropout=0.1)(y, y)
        x = layers.Add()([x, y])
        y = layers.LayerNormalization()(x)
        y = layers.Dense(4 * width, activation="gelu")(y)
        y = layers.Dropout(0.1)(layers.Dense(width)(y))
        x = layers.Add()([x, y])
    outputs = layers.Dense(20)(layers.GlobalAveragePooling1D()(x))
    return (keras.Model(inputs, outputs), numpy.words([rows, length], words),
            numpy.labels(rows, 20), rows)


def embedding(keras, numpy):
    """Click prediction: 6 tables of 100,000 x 64, batches of 8192."""
    layers, rows, tables, words = keras.layers, 8192, 6, 100_000
    inputs = layers.Input([tables], dtype="int32")
    columns = [layers.Embedding(words, 64)(inputs[:, i])
               for i in range(tables)]
    x = layers.Concatenate()(columns)
    for units in (512, 256, 128):
        x = layers.Dense(units, activation="relu")(x)
    return (keras.Model(inputs, layers.Dense(2)(x)),
            numpy.words([rows, tables], words), numpy.labels(rows, 2), rows)


def autoencoder(keras, numpy):
    """Dense, 12288-2048-512-2048-12288, batches of 256."""
    layers, rows, size = keras.layers, 256, 64 * 64 * 3
    model = keras.Sequential([layers.Input([size])] + [
        layers.Dense(units, activation="relu") for units in (2048, 512, 2048)
    ] + [layers.Dense(size, activation="sigmoid")])
    pictures = numpy.normal([rows, size])
    return model, pictures, pictures, rows


MODELS = {f.__name__: f for f in
          (cnn, resnet, lstm, attention, embedding, autoencoder)}


# ---- the training: talks with the recorder by its standard streams -----------


class Numbers:
    """Random data for all batches."""

    def __init__(self, np):
        self._np, self._random = np, np.random.default_rng(SEED)

    def _rows(self, shape):
        return [shape[0] * (WARM_UP + STEPS + AHEAD), *shape[1:]]

    def normal(self, shape):
        return self._random.standard_normal(self._rows(shape),
                                            self._np.float32)

    def words(self, shape, words):
        return self._random.integers(0, words, self._rows(shape),
                                     self._np.int32)

    def labels(self, rows, classes):
        return self.words([rows], classes)


def say_and_wait(word):
    print(word, flush=True)
    sys.stdin.readline()


def train(name):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import numpy as np
    import tensorflow as tf
    keras = tf.keras
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(SEED)
    model, inputs, targets, batch = MODELS[name](keras, Numbers(np))
    loss = (keras.losses.MeanSquaredError() if name == "autoencoder" else
            keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss,
                  jit_compile=False)

    class Pause(keras.callbacks.Callback):
        def on_train_batch_end(self, step, logs=None):
            if step + 1 == WARM_UP:
                say_and_wait("warm")
            if step + 1 == WARM_UP + STEPS:
                say_and_wait("done")
                sys.exit()

    model.fit(inputs, targets, batch_size=batch, epochs=1, verbose=0,
              shuffle=False, callbacks=[Pause()])


# ---- the recorder -------------------------------------------------------------


def wait_for(condition, what):
    end = time.monotonic() + 600
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"not within 600 s: {what}")
        time.sleep(0.01)


@contextlib.contextmanager
def daemon():
    with tempfile.TemporaryDirectory(prefix="mets-") as run_dir:
        log = pathlib.Path(run_dir, "metsd.log")
        with open(log, "w") as out:
            metsd = subprocess.Popen(
                [BUILD / "bin/metsd", "--run-dir", run_dir, "--device",
                 "host:8GiB", "--swap-space", "1GiB"], stderr=out)
        wait_for(lambda: "ready" in log.read_text()
                 or metsd.poll() is not None, "metsd is ready")
        try:
            yield run_dir
        finally:
            metsd.terminate()
            metsd.wait()


def expect(job, word):
    line = job.stdout.readline().strip()
    if line != word:
        sys.exit(f"the training said '{line}' instead of '{word}'")


def go_on(job):
    job.stdin.write("\n")
    job.stdin.flush()


def record(name, run_dir, file):
    """Trains, and records the steps between the two words."""
    metsctl = [BUILD / "bin/metsctl", "--run-dir", run_dir]
    job = subprocess.Popen(
        [*metsctl, "run", "--job", name, "--", *live.forks(BUILD)[True],
         __file__, "--train", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env=dict(os.environ, METS_REQUIRED="1"))
    expect(job, "warm")
    file.unlink(missing_ok=True)
    recorder = subprocess.Popen([*metsctl, "record", name, file],
                                stdout=subprocess.DEVNULL)
    wait_for(lambda: file.exists() or recorder.poll() is not None,
             "the recording runs")
    begin = time.monotonic()
    go_on(job)
    expect(job, "done")
    seconds = time.monotonic() - begin
    recorder.send_signal(signal.SIGINT)
    if recorder.wait():
        sys.exit("metsctl record failed")
    go_on(job)
    if job.wait():
        sys.exit(f"the training {name} failed")
    return seconds


def summary(file):
    """What the README says of a trace."""
    count, live, peak, names = collections.Counter(), 0, 0, set()
    with lzma.open(file, "rt") as lines:
        for line in lines:
            fields = line.rstrip("\n").split(",")
            if len(fields) != 5 or fields[0] == "t_us":
                continue
            count[fields[1]] += 1
            sign = {"malloc": 1, "free": -1}.get(fields[1], 0)
            live += sign * int(fields[3])
            peak = max(peak, live)
            names.add(fields[4])
    return (f"{sum(count.values())} events, {count['begin']} ops of "
            f"{len(names - {''})} types, {count['malloc']} buffers, peak "
            f"{peak / MIB:.0f} MiB, {file.stat().st_size / 1024:.0f} KiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=", ".join(MODELS))
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent)
    parser.add_argument("--train", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        return train(arguments.train)
    for name in arguments.names or MODELS:
        file = arguments.out / f"mets-{name}.csv.xz"
        with daemon() as run_dir:
            seconds = record(name, run_dir, file)
        print(f"{name}: {STEPS} steps in {seconds:.1f} s, {summary(file)}",
              flush=True)


if __name__ == "__main__":
    main()
