"""A training of TensorFlow on a GPU, bit for bit the same each time.

Writes a JSON file: `begin` and `end` (Unix time of the first measured step's
beginning and the last one's end), `seconds`, `step_seconds`, `losses`, `sha256`
of all weights afterwards, `peak_bytes` of the allocator in the measured steps,
and with METS `mets`, what mets_tf_stats says, and `moved_bytes`, what left and
came back in the measured steps.
"""

import argparse
import ctypes
import hashlib
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

import keras  # noqa: E402
import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402

CLASSES = 100
WORDS = 8192
STATS = ("live_bytes peak_live_bytes resident_bytes cached_bytes swapped_bytes "
         "pinned_bytes held_bytes evicted_bytes restored_bytes clean_evictions "
         "unobserved_accesses allocations cache_hits acquires waits wait_ns"
         ).split()


def mlp(_):
    return keras.Sequential([
        keras.Input((4096,)),
        *[keras.layers.Dense(4096, "relu") for _ in range(6)],
        keras.layers.Dense(CLASSES)])


def cnn(_):
    layers = [keras.Input((64, 64, 3))]
    for width in (64, 128, 256):
        layers += [keras.layers.Conv2D(width, 3, padding="same",
                                       activation="relu"),
                   keras.layers.BatchNormalization(),
                   keras.layers.Conv2D(width, 3, padding="same",
                                       activation="relu"),
                   keras.layers.MaxPooling2D()]
    return keras.Sequential([*layers, keras.layers.Flatten(),
                             keras.layers.Dropout(0.3),
                             keras.layers.Dense(CLASSES)])


def lstm(_):
    return keras.Sequential([
        keras.Input((64, 256)),
        keras.layers.LSTM(512, return_sequences=True, use_cudnn=False),
        keras.layers.LSTM(512, use_cudnn=False),
        keras.layers.Dense(CLASSES)])


def transformer(arguments):
    width, length = 1024, 512
    tokens = keras.Input((length,), dtype="int32")
    x = keras.layers.Embedding(WORDS, width)(tokens)
    for _ in range(arguments.layers):
        y = keras.layers.LayerNormalization()(x)
        y = keras.layers.MultiHeadAttention(16, width // 16)(y, y)
        x = x + y
        y = keras.layers.LayerNormalization()(x)
        y = keras.layers.Dense(4 * width, "gelu")(y)
        x = x + keras.layers.Dense(width)(y)
    x = keras.layers.GlobalAveragePooling1D()(x)
    return keras.Model(tokens, keras.layers.Dense(CLASSES)(x))


def resnet50(_):
    return keras.applications.ResNet50(weights=None, classes=CLASSES,
                                       classifier_activation=None)


MODELS = {f.__name__: f for f in (mlp, cnn, lstm, transformer, resnet50)}


def batch_of(model, count, seed):
    shape = (count, *model.input_shape[1:])
    numbers = numpy.random.default_rng(seed)
    if model.inputs[0].dtype.startswith("int"):
        inputs = numbers.integers(0, WORDS, shape, dtype=numpy.int32)
    else:
        inputs = numbers.standard_normal(shape, dtype=numpy.float32)
    return inputs, numbers.integers(0, CLASSES, count)


def make_step(model, jit):
    optimizer = keras.optimizers.Adam(1e-4)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=jit)
    def step(inputs, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(inputs, training=True))
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return step


def sha256(model):
    digest = hashlib.sha256()
    for weight in model.get_weights():
        digest.update(numpy.ascontiguousarray(weight).tobytes())
    return digest.hexdigest()


def mets_stats():
    library = os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH")
    if not library:
        return None
    names = [name for name in STATS]

    class Stats(ctypes.Structure):
        _fields_ = [("size", ctypes.c_size_t)] + [
            (name, ctypes.c_uint64) for name in names]

    stats = Stats(ctypes.sizeof(Stats))
    if ctypes.CDLL(library).mets_tf_stats(ctypes.byref(stats)) != 0:
        return None
    return {name: getattr(stats, name) for name in names}


def moved_bytes(stats):
    return stats["evicted_bytes"] + stats["restored_bytes"] if stats else 0


def wait_for(path, seconds=600):
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            sys.exit(f"no {path} within {seconds} s")
        time.sleep(0.002)


def train(arguments):
    keras.utils.set_random_seed(arguments.seed)
    tf.config.experimental.enable_op_determinism()
    model = MODELS[arguments.model](arguments)
    inputs, labels = batch_of(model, arguments.batch, arguments.seed)
    inputs, labels = tf.constant(inputs), tf.constant(labels)
    step = make_step(model, arguments.jit)
    for _ in range(arguments.warmup):
        step(inputs, labels).numpy()
    if arguments.go:
        arguments.go.with_suffix(".ready").touch()
        wait_for(arguments.go.with_suffix(".go0"))
    tf.config.experimental.reset_memory_stats("GPU:0")
    moved = moved_bytes(mets_stats())
    losses, step_seconds = [], []
    begin = time.time()
    for part in range(arguments.rounds):
        if arguments.go:
            wait_for(arguments.go.with_suffix(f".go{part}"))
        before = time.monotonic()
        for _ in range(arguments.steps // arguments.rounds):
            time.sleep(arguments.input_seconds)
            losses.append(float(step(inputs, labels).numpy()))
            now = time.monotonic()
            step_seconds.append(now - before)
            before = now
            print(f"step {step_seconds[-1]:.4f} s loss {losses[-1]:.6f}",
                  flush=True)
        if arguments.go:
            arguments.go.with_suffix(f".done{part}").touch()
    end = time.time()
    if arguments.go:
        wait_for(arguments.go.with_suffix(".end"))
    memory = tf.config.experimental.get_memory_info("GPU:0")
    moved = moved_bytes(mets_stats()) - moved
    return {"begin": begin, "end": end, "seconds": sum(step_seconds),
            "step_seconds": step_seconds, "losses": losses,
            "peak_bytes": memory["peak"], "sha256": sha256(model),
            "moved_bytes": moved, "mets": mets_stats()}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--layers", type=int, default=6, help="transformer's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20, help="measured ones")
    parser.add_argument("--warmup", type=int, default=4, help="steps before")
    parser.add_argument("--jit", action="store_true", help="compile by XLA")
    parser.add_argument("--input-seconds", type=float, default=0,
                        help="pass asleep before each step")
    parser.add_argument("--rounds", type=int, default=1,
                        help="parts of the measured steps")
    parser.add_argument("--go", metavar="FILE", type=pathlib.Path,
                        help="write FILE.ready after the warm-up, wait for "
                        "FILE.goN before round N, write FILE.doneN behind it; "
                        "at the end wait for FILE.end before the weights are "
                        "read")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    return parser.parse_args()


def main():
    arguments = parse()
    arguments.out.write_text(json.dumps(train(arguments)) + "\n",
                             encoding="utf-8")


if __name__ == "__main__":
    main()
