"""Programs on TensorFlow's own functions, for workloads.py.

Each returns what its digest is made of.
"""

import concurrent.futures

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import collective_ops

WIDTH = 512


def normal(shape, seed):
    return tf.random.stateless_normal(shape, [seed, 7])


def normal_numpy(shape):
    return np.random.RandomState(5).standard_normal(shape).astype(np.float32)


def eager():
    x = normal([256, 256], 1)
    y = normal([256, 256], 2)
    for i in range(10):
        x = tf.nn.tanh(tf.matmul(x, y)) + 0.1 * x
        x = tf.concat([x[128:], x[:128]], 0)
    values, indices = tf.math.top_k(x, 8)
    return [x, tf.linalg.inv(x + 50 * tf.eye(256)), values, indices]


def graph():
    w = tf.Variable(normal([512, 512], 3))
    m = tf.Variable(tf.zeros([512, 512]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.nn.relu(tf.matmul(x, w)) + x
            loss = tf.reduce_mean(tf.square(tf.matmul(y, w, transpose_b=True)))
        grad = tape.gradient(loss, w)
        m.assign(0.9 * m + grad)
        w.assign_sub(0.01 * m)
        return loss

    losses = [step(normal([512 + 8 * i, 512], 10 + i)) for i in range(4)]
    return [losses, w, m]


def constants():
    table = np.arange(256 * 256, dtype=np.float32).reshape(256, 256) / 1e4

    @tf.function
    def step(x):
        return tf.matmul(x, tf.constant(table)) + tf.constant(table[::-1])

    x = normal([256, 256], 4)
    return [step(step(x)) for _ in range(3)]


def while_loop():
    weights = [tf.Variable(normal([512, 512], 40 + i)) for i in range(8)]

    @tf.function
    def run_one(x, weight):
        history = tf.TensorArray(tf.float32, 4)
        i = tf.constant(0)
        while i < 4:
            x = tf.sin(tf.matmul(x, weight) * 0.01)
            history = history.write(i, x)
            if tf.reduce_sum(x) > 0:
                x = x * 1.01
            i += 1
        return history.stack(), x

    x = normal([128, 512], 5)
    results = []
    for weight in weights:
        with tf.GradientTape() as tape:
            stacked, last = run_one(x, weight)
            loss = tf.reduce_sum(stacked) + tf.reduce_sum(last)
        weight.assign_sub(tape.gradient(loss, weight))
        results += [stacked, last]
    return results + weights


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


def xla():
    weights = [tf.Variable(normal([512, 512], 20 + i)) for i in range(12)]

    @tf.function(jit_compile=True)
    def step(x, w):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.softmax(tf.matmul(x, w)) ** 2)
        w.assign_sub(tape.gradient(loss, w))
        return loss

    x = normal([128, 512], 12)
    return [step(x, w) for _ in range(2) for w in weights] + weights


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


def recomputed_gradients():
    """Activations that are computed again in the backward pass."""
    weights = [tf.Variable(tf.random.stateless_normal([WIDTH, WIDTH], [i, 1]) /
                           20.0) for i in range(4)]

    def block(weight):
        return tf.recompute_grad(
            lambda x: tf.nn.gelu(tf.matmul(tf.nn.gelu(tf.matmul(x, weight)),
                                           weight)))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = x
            for weight in weights:
                y = block(weight)(y)
            loss = tf.reduce_mean(tf.square(y - x))
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(0.1 * gradient)
        return loss

    x = tf.constant(normal_numpy([1024, WIDTH]))
    return [step(x) for _ in range(3)] + weights


def session_training():
    """As TensorFlow 1 has it: a graph, a session, feeds and fetches."""
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, WIDTH])
        y = x
        for i in range(6):
            weight = v1.get_variable(
                f"w{i}", initializer=tf.random.stateless_normal(
                    [WIDTH, WIDTH], [i, 5]) / 20.0, use_resource=i % 2 == 0)
            y = tf.nn.relu(tf.matmul(y, weight)) + x
        loss = tf.reduce_mean(tf.square(y))
        train = v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            feed = {x: normal_numpy([512, WIDTH])}
            losses = [session.run([loss, train], feed)[0] for _ in range(3)]
            return losses + session.run([y, *v1.trainable_variables()], feed)


def tables_and_optionals():
    """Tensors that tables, optionals and ragged rows keep, and weights that
    take them up."""
    weights = [tf.Variable(normal([512, 512], 60 + i)) for i in range(16)]
    keys = tf.range(512, dtype=tf.int64)
    table = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.float32, tf.zeros([256]), empty_key=-1, deleted_key=-2,
        initial_num_buckets=1024)
    table.insert(keys, normal([512, 256], 1))

    @tf.function
    def look(k, weight):
        weight.assign_add(tf.tile(table.lookup(k) * 2.0, [512 // k.shape[0], 2]))

    data = iter(tf.data.Dataset.from_tensor_slices(normal([2, 512, 512], 4)))
    for i in range(0, len(weights), 4):
        look(keys, weights[i])
        look(keys[::2], weights[i + 1])
        got = data.get_next_as_optional()
        weights[i + 2].assign_add(tf.cond(
            got.has_value(), lambda: got.get_value() * 3.0,
            lambda: tf.zeros([512, 512])))
        rows = tf.RaggedTensor.from_row_lengths(
            weights[i + 2].read_value(), tf.fill([64], 8))
        weights[i + 3][:64].assign(tf.reduce_sum(rows, 1))
    return [rows.to_tensor(), *weights]


def collectives():
    """Two devices add up, and gather, what each has."""
    def on(i):
        @tf.function
        def run(x):
            with tf.device(f"CPU:{i}"):
                return (collective_ops.all_reduce(x, 2, 1, 1, "Add", "Id", [0]),
                        collective_ops.all_gather(x * 2.0, 2, 1, 2))

        return run(normal([256, 256], i))

    with concurrent.futures.ThreadPoolExecutor() as at_once:
        return list(at_once.map(on, range(2)))


def recurrent_training():
    """A loop whose backward pass finds what the forward pass has left in
    lists."""
    w, u = (tf.Variable(normal([WIDTH, WIDTH], 70 + i) / 20.0) for i in range(2))

    @tf.function
    def step(x, h):
        inputs = tf.TensorArray(tf.float32, 24).unstack(x)
        with tf.GradientTape() as tape:
            states = tf.TensorArray(tf.float32, 24)
            for i in tf.range(24):
                gate = tf.sigmoid(tf.matmul(h, u) + inputs.read(i))
                h = gate * tf.tanh(tf.matmul(h, w)) + (1.0 - gate) * h
                states = states.write(i, h)
            loss = tf.reduce_mean(tf.square(states.stack() - 0.5))
        for weight, gradient in zip((w, u), tape.gradient(loss, (w, u))):
            weight.assign_sub(10.0 * gradient)
        return loss

    x, h = normal([24, 1, WIDTH], 72), normal([WIDTH, WIDTH], 73)
    return [step(x, h) for _ in range(2)] + [w, u]


def list_ops():
    """The ops of lists one by one, from Python and in graphs, and lists that
    Python and others get."""
    raw = tf.raw_ops
    x = normal([20, 32, 64], 74)
    any_shape = tf.constant(-1)
    square = tf.constant([32, 64])

    def from_tensor(t):
        return raw.TensorListFromTensor(tensor=t, element_shape=any_shape)

    def stack(handle, dtype=tf.float32):
        return raw.TensorListStack(input_handle=handle, element_shape=any_shape,
                                   element_dtype=dtype)

    def get(handle, i):
        return raw.TensorListGetItem(input_handle=handle, index=i,
                                     element_shape=square,
                                     element_dtype=tf.float32)

    def empty(dtype):
        return raw.EmptyTensorList(element_shape=any_shape, max_num_elements=-1,
                                   element_dtype=dtype)

    def push(handle, value):
        return raw.TensorListPushBack(input_handle=handle, tensor=value)

    def pop(handle, dtype):
        return raw.TensorListPopBack(input_handle=handle, element_dtype=dtype,
                                     element_shape=any_shape)

    def of_each_op(t):
        parts = raw.TensorListSplit(tensor=t, element_shape=any_shape,
                                    lengths=tf.constant([5, 0, 15], tf.int64))
        whole, _ = raw.TensorListConcatV2(
            input_handle=parts, element_shape=any_shape, element_dtype=tf.float32,
            leading_dims=tf.zeros([0], tf.int64))
        some = raw.TensorListScatterV2(
            tensor=t[:3], indices=[4, 0, 2], element_shape=square, num_elements=6)
        some = raw.TensorListScatterIntoExistingList(
            input_handle=some, tensor=t[3:5] * 2.0, indices=[1, 2])
        gathered = raw.TensorListGather(input_handle=some, indices=[2, 3, 0],
                                        element_shape=square,
                                        element_dtype=tf.float32)
        zeros = get(raw.TensorListReserve(element_shape=square, num_elements=2,
                                          element_dtype=tf.float32), 1)
        both = raw.AddN(inputs=[some, raw.ZerosLike(x=some), some])
        longer = raw.TensorListResize(input_handle=both, size=7)
        joined = raw.TensorListConcatLists(input_a=longer, input_b=some,
                                           element_dtype=tf.float32)
        batch = raw.TensorListPushBackBatch(
            input_handles=tf.stack([joined, some]), tensor=t[5:7])
        return [whole, gathered, zeros, stack(batch[0]), stack(batch[1]),
                get(batch[1], 6) + 1.0, raw.TensorListLength(input_handle=joined)]

    def nested(t):
        outer = empty(tf.variant)
        for i in range(3):
            outer = push(outer, from_tensor(t * float(i)))
        outer = raw.AddN(inputs=[outer, outer, raw.ZerosLike(x=outer)])
        outer, inner = pop(outer, tf.variant)
        inner, last = pop(inner, tf.float32)
        return [last, stack(inner), stack(stack(outer, tf.variant)[1])]

    def words(t):
        strings = tf.strings.as_string(tf.range(4096)[:, None] + tf.zeros(
            [1, 3], tf.int32) + tf.cast(t[0, 0, 0], tf.int32))
        return tf.strings.to_hash_bucket_fast(
            stack(from_tensor(tf.transpose(strings)), tf.string), 1000)

    @tf.function
    def fill(t):
        return from_tensor(tf.sin(t)), push(empty(tf.float32), t[0] * 2.0)

    def list_for_python(handle):
        return tf.reduce_sum(stack(handle), 0)

    @tf.function
    def use(handle):
        return [stack(handle), get(handle, 3), tf.py_function(
            list_for_python, [handle], tf.float32)]

    results = []
    for run in of_each_op, nested, words:
        results += [run(x), tf.function(run)(x)]
    # Python looks at what comes out of a list.
    kept, one = fill(x)
    item = get(kept, 7)
    _, last = pop(one, tf.float32)
    view = memoryview(last)
    results += [float(np.asarray(memoryview(item)).sum()), use(kept), use(kept)]
    results += [float(np.asarray(view).sum())]
    # Others keep lists.
    optional = raw.OptionalFromValue(components=[kept])
    (again,) = raw.OptionalGetValue(optional=optional, output_types=[tf.variant],
                                    output_shapes=[[]])
    elements = tf.data.Dataset.from_tensors(kept).repeat(2).map(
        lambda handle: (handle, push(handle, stack(handle)[1] * 2.0)))
    variable = tf.Variable(kept)
    del kept
    results += [stack(again), stack(variable.read_value()),
                [(stack(a), stack(b)) for a, b in elements],
                tf.strings.length(tf.io.serialize_tensor(variable.read_value()))]
    return results


def scans():
    """Loops that TensorFlow writes itself, and their gradients."""
    w = tf.Variable(normal([64, 64], 75) / 10.0)
    x = normal([18, 64, 64], 76)

    @tf.function
    def step(t):
        with tf.GradientTape() as tape:
            scanned = tf.scan(lambda a, b: tf.tanh(tf.matmul(a, w) + b), t)
            mapped = tf.map_fn(lambda a: tf.cond(
                a[0, 0] > 0, lambda: a * 2.0, lambda: tf.matmul(a, w)), scanned)
            ragged = tf.RaggedTensor.from_row_lengths(
                mapped, [3, 0, 7, 8])
            summed = tf.map_fn(lambda row: tf.reduce_sum(row * row, 0), ragged,
                               fn_output_signature=tf.float32)
            # Twice in one loop, which adds the gradients of a list.
            array = tf.TensorArray(tf.float32, 18, clear_after_read=False)
            array = array.unstack(scanned)
            total = tf.zeros([64, 64])
            for i in tf.range(17):
                total += array.read(i) * array.read(i + 1)
            parts = tf.TensorArray(tf.float32, 2, infer_shape=False)
            parts = parts.split(mapped[:, 0], [7, 11])
            loss = tf.reduce_sum(summed) + tf.reduce_sum(
                total * total) + tf.reduce_sum(parts.concat()[1:]) + tf.reduce_sum(
                    array.gather([1, 3, 1]))
        gradient = tape.gradient(loss, w)
        w.assign_sub(1e-6 * gradient)
        return loss, gradient

    @tf.function
    def outside(t):
        for _ in tf.range(20):
            t = tf.sin(tf.matmul(t, w))
        return t

    # The tape is outside of the graph, which returns its lists to Python.
    with tf.GradientTape(persistent=True) as tape:
        y = outside(x[0])
        z = tf.reduce_sum(y * y)
    return [step(x), step(x), tape.gradient(z, w), tape.gradient(y, w),
            tf.vectorized_map(lambda a: tf.while_loop(
                lambda i, _: i < 3, lambda i, b: (i + 1, tf.matmul(b, w)),
                [0, a])[1], x)]


# Those with tensors of a MiB and more.
LARGE = [graph, while_loop, xla, recomputed_gradients, session_training,
         tables_and_optionals, recurrent_training]
SMALL = [eager, constants, tensor_array_v1, sparse, data, strings_and_ragged,
         views, collectives, list_ops, scans]
