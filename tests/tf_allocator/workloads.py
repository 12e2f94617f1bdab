"""Small TensorFlow programs of many kinds, each with a digest of its results.

    python workloads.py [NAME...]

prints one JSON line per program: name, digest, seconds, and when the METS
plug-in is loaded the unobserved accesses that it caused.
"""

import hashlib
import json
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]
                       / "tf_allocator" / "python"))
import mets_stats


def digest(values):
    sha = hashlib.sha256()
    for value in tf.nest.flatten(values):
        array = np.ascontiguousarray(np.asarray(value))
        sha.update(str((array.dtype, array.shape)).encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


missed = {}  # Filled by fit.


def normal(shape, seed):
    return tf.random.stateless_normal(shape, [seed, 7])


def eager():
    x = normal([256, 256], 1)
    y = normal([256, 256], 2)
    for i in range(10):
        x = tf.nn.tanh(tf.matmul(x, y)) + 0.1 * x
        x = tf.concat([x[128:], x[:128]], 0)
    values, indices = tf.math.top_k(x, 8)
    return [x, tf.linalg.inv(x + 50 * tf.eye(256)), values, indices]


def graph():
    w = tf.Variable(normal([256, 256], 3))
    m = tf.Variable(tf.zeros([256, 256]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.nn.relu(tf.matmul(x, w)) + x
            loss = tf.reduce_mean(tf.square(tf.matmul(y, w, transpose_b=True)))
        grad = tape.gradient(loss, w)
        m.assign(0.9 * m + grad)
        w.assign_sub(0.01 * m)
        return loss

    losses = [step(normal([128 + 8 * i, 256], 10 + i)) for i in range(8)]
    return [losses, w, m]


def constants():
    table = np.arange(256 * 256, dtype=np.float32).reshape(256, 256) / 1e4

    @tf.function
    def step(x):
        return tf.matmul(x, tf.constant(table)) + tf.constant(table[::-1])

    x = normal([256, 256], 4)
    return [step(step(x)) for _ in range(3)]


def while_loop():
    @tf.function
    def run(x):
        history = tf.TensorArray(tf.float32, 6)
        i = tf.constant(0)
        while i < 6:
            x = tf.sin(tf.matmul(x, x) * 0.01)
            history = history.write(i, x)
            if tf.reduce_sum(x) > 0:
                x = x * 1.01
            i += 1
        return history.stack(), x

    x = normal([128, 128], 5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        stacked, last = run(x)
        loss = tf.reduce_sum(stacked) + tf.reduce_sum(last)
    return [stacked, last, tape.gradient(loss, x)]


def tensor_array_v1():
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        v1.disable_control_flow_v2()
        try:
            start = v1.placeholder(tf.float32, [128, 128])
            array = tf.TensorArray(tf.float32, 5)

            def body(i, x, a):
                x = tf.tanh(tf.matmul(x, x) * 0.02 + x)
                return i + 1, x, a.write(i, x)

            _, last, array = tf.while_loop(
                lambda i, *_: i < 5, body, (0, start, array))
            stacked = array.stack()
            grad = tf.gradients(tf.reduce_sum(stacked), start)[0]
            queue = v1.FIFOQueue(4, [tf.float32], [[128, 128]])
            push = queue.enqueue([last])
            pull = queue.dequeue_many(2)
            ref = v1.get_variable("ref", initializer=start * 2,
                                  use_resource=False,
                                  validate_shape=False)
            update = v1.assign_add(ref, last)
            named = v1.get_variable("named", initializer=np.ones(
                [128, 128], np.float32), use_resource=True)
            update_named = named.assign_add(last)
            feed = {start: normal_numpy([128, 128])}
            with v1.Session() as session:
                session.run([ref.initializer, named.initializer], feed)
                out = session.run([stacked, grad, last], feed)
                for _ in range(2):
                    session.run(push, feed)
                    out += session.run([update, update_named], feed)
                return out + [session.run(pull)]
        finally:
            v1.enable_control_flow_v2()


def normal_numpy(shape):
    return np.random.RandomState(5).standard_normal(shape).astype(np.float32)


def sparse():
    table = tf.Variable(normal([512, 64], 6))

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            rows = tf.nn.embedding_lookup(table, ids)
            loss = tf.reduce_sum(rows * rows)
        grad = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(0.1 * grad.values, grad.indices))
        return loss

    ids = tf.range(0, 512, 2)
    losses = [step(ids) for _ in range(3)]
    table.assign(table * 2.0)
    losses.append(step(ids))
    return [losses, table]


def fit(model, shape, classes=10, jit=False):
    model.compile(
        tf.keras.optimizers.Adam(0.01),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"], jit_compile=jit)
    x = normal_numpy([96] + shape)
    y = np.arange(96) % classes
    before = mets_stats.read()
    history = model.fit(x, y, batch_size=32, epochs=3, verbose=0)
    if before is not None:
        key = "unobserved_accesses_total"
        missed["unobserved_accesses_in_training"] = (
            mets_stats.read()[key] - before[key])
    return [history.history["loss"], model.get_weights(), model.predict(
        x, batch_size=40, verbose=0)]


def keras_mlp():
    layers = tf.keras.layers
    return fit(tf.keras.Sequential(
        [layers.Dense(256, "relu"), layers.Dropout(0.2, seed=3),
         layers.Dense(256, "gelu"), layers.LayerNormalization(),
         layers.Dense(10)]), [256])


def keras_conv():
    layers = tf.keras.layers
    return fit(tf.keras.Sequential(
        [layers.Conv2D(16, 3, padding="same"), layers.BatchNormalization(),
         layers.ReLU(), layers.MaxPooling2D(),
         layers.DepthwiseConv2D(3), layers.Conv2D(32, 3, activation="relu"),
         layers.GlobalAveragePooling2D(), layers.Dense(10)]), [24, 24, 3])


def keras_lstm():
    layers = tf.keras.layers
    return fit(tf.keras.Sequential(
        [layers.LSTM(64, return_sequences=True), layers.GRU(64),
         layers.Dense(10)]), [12, 32])


def keras_attention():
    layers = tf.keras.layers
    x = layers.Input([24, 64])
    y = layers.MultiHeadAttention(4, 16)(x, x)
    y = layers.LayerNormalization()(x + y)
    y = layers.Dense(10)(layers.Flatten()(y))
    return fit(tf.keras.Model(x, y), [24, 64])


def data():
    source = tf.data.Dataset.from_tensor_slices(normal([64, 64, 64], 8))
    source = source.map(lambda x: tf.matmul(x, x), num_parallel_calls=2)
    source = source.cache().shuffle(32, seed=3).repeat(2).batch(8).prefetch(2)
    source = source.map(lambda x: (x, tf.py_function(
        lambda t: t.numpy().sum(axis=0), [x], tf.float32)))

    @tf.function
    def total(x, s):
        return tf.reduce_sum(tf.tanh(x)) + tf.reduce_sum(s)

    return [total(x, s) for x, s in source]


def save_load():
    model = tf.keras.Sequential([tf.keras.layers.Dense(128)])
    model.build([None, 128])
    x = normal([64, 128], 9)
    with tempfile.TemporaryDirectory() as folder:
        before = model(x)
        model.save(folder + "/model.keras")
        again = tf.keras.models.load_model(folder + "/model.keras")
        checkpoint = tf.train.Checkpoint(kernel=model.layers[0].kernel)
        path = checkpoint.save(folder + "/c")
        model.layers[0].kernel.assign(tf.zeros([128, 128]))
        checkpoint.restore(path)
        tf.saved_model.save(tf.Module(), folder + "/s")
        return [np.asarray(before) * 0, again(x) - before, model(x) - before]


def xla():
    w = tf.Variable(normal([128, 128], 11))

    @tf.function(jit_compile=True)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.softmax(tf.matmul(x, w)) ** 2)
        w.assign_sub(tape.gradient(loss, w))
        return loss, tf.matmul(x, w)

    return [step(normal([128, 128], 12 + i)) for i in range(4)] + [w]


def keras_xla():
    """The whole step is one XLA program."""
    layers = tf.keras.layers
    return fit(tf.keras.Sequential(
        [layers.Dense(128, "relu"), layers.Dense(10)]), [128], jit=True)


def strings_and_ragged():
    words = tf.strings.as_string(tf.range(3000))
    joined = tf.strings.join([words, words], "-")
    ragged = tf.RaggedTensor.from_row_lengths(
        normal([2048], 14), tf.fill([256], 8))
    mapped = tf.map_fn(lambda r: tf.reduce_sum(r) * r, ragged)
    return [tf.strings.to_hash_bucket_fast(joined, 1000),
            tf.strings.length(joined), mapped.values,
            tf.vectorized_map(lambda r: r * 2, normal([64, 128], 15)),
            tf.map_fn(tf.sin, normal([16, 1024], 16))]


def views():
    """Python looks into tensors while other ops run."""
    x = normal([256, 256], 17)
    views_of = memoryview(x)
    total = 0.0
    for i in range(3):
        y = tf.matmul(x, x)
        total += float(np.asarray(views_of).sum()) + float(y.numpy().mean())
    return [total, x]


ALL = [eager, graph, constants, while_loop, tensor_array_v1, sparse, keras_mlp,
       keras_conv, keras_lstm, keras_attention, data, save_load, xla,
       keras_xla, strings_and_ragged, views]


def main():
    tf.config.experimental.enable_op_determinism()
    tf.config.threading.set_intra_op_parallelism_threads(2)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    names = sys.argv[1:]
    for program in ALL:
        if names and program.__name__ not in names:
            continue
        tf.keras.utils.set_random_seed(11)
        before = mets_stats.read()
        start = time.monotonic()
        try:
            found = digest(program())
        except tf.errors.UnimplementedError:  # Not deterministic on a GPU.
            found = "unimplemented"
        result = {"name": program.__name__, "digest": found,
                  "seconds": round(time.monotonic() - start, 2)}
        after = mets_stats.read()
        if after is not None:
            for key in ("unobserved_accesses_total", "evicted_bytes_total"):
                result[key] = after[key] - (before or {}).get(key, 0)
            result.update(missed)
            missed.clear()
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
