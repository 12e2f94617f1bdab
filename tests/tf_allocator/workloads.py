"""Small TensorFlow programs of many kinds, each with a digest of its results.

    python workloads.py [NAME... | --small | --large | --ask]

prints one JSON line per program: name, digest, seconds, and when the METS plug-in
is loaded the unobserved accesses that it caused, bytes evicted and moved, and the
most that was live. With --large those run whose tensors have a MiB and more, with
--small the others; with --ask those whose names come on standard input, line by
line, after "ready" has been printed.
"""

import gc
import hashlib
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Keras imports these where they are, which takes a third of the time.
sys.modules.update(sklearn=None, matplotlib=None)

import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]
                       / "tf_allocator" / "python"))
import graph_programs
import keras_programs
import mets_stats
import training_programs

LARGE = [*graph_programs.LARGE, *keras_programs.LARGE,
         *training_programs.LARGE]
ALL = [*graph_programs.SMALL, *keras_programs.SMALL, *LARGE]


def digest(values):
    sha = hashlib.sha256()
    for value in tf.nest.flatten(values):
        if tf.is_tensor(value) and not isinstance(value, tf.Variable):
            # An op reads it, and what that makes nobody has used yet.
            value = tf.raw_ops.DeepCopy(x=value)
        array = np.ascontiguousarray(np.asarray(value))
        sha.update(str((array.dtype, array.shape)).encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def run(program):
    """The line for one program."""
    tf.keras.utils.set_random_seed(11)
    gc.collect()  # What the one before has left.
    before = mets_stats.read()
    if before is not None and not tf.config.list_physical_devices("GPU"):
        tf.config.experimental.reset_memory_stats("CPU:0")
    start = time.monotonic()
    try:
        found = digest(program())
    except tf.errors.OpError as error:
        # On a GPU some have no kernel, or none that is deterministic.
        if not tf.config.list_physical_devices("GPU"):
            raise
        print(f"{program.__name__}: {error}", file=sys.stderr)
        found = type(error).__name__
    result = {"name": program.__name__, "digest": found,
              "seconds": round(time.monotonic() - start, 2)}
    after = mets_stats.read()
    if after is not None:
        def grown(key):
            return after[key] - (before or {}).get(key, 0)

        for key in ("unobserved_accesses_total", "evicted_bytes_total"):
            result[key] = grown(key)
        result["moved_bytes"] = (grown("evicted_bytes_total") +
                                 grown("restored_bytes_total"))
        result["held_bytes"] = after["held_bytes"]
        # Without what programs before it have left in TensorFlow.
        result["peak_live_bytes"] = (after["peak_live_bytes"] -
                                     (before or {}).get("live_bytes", 0))
    # In one piece: standard error may be the same file.
    print(json.dumps(result) + "\n", end="", flush=True)


def main():
    tf.config.experimental.enable_op_determinism()
    tf.config.threading.set_intra_op_parallelism_threads(2)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2)
    programs = {program.__name__: program for program in ALL}
    if sys.argv[1:] == ["--ask"]:
        tf.zeros([])  # Connects.
        print("ready", flush=True)
        for line in sys.stdin:
            run(programs[line.strip()])
        return
    names = sys.argv[1:] or programs
    if names in (["--small"], ["--large"]):
        names = [name for name in programs
                 if (programs[name] in LARGE) == (names == ["--large"])]
    for name in names:
        run(programs[name])


if __name__ == "__main__":
    main()
