"""Trainings as people write them, for workloads.py.

Each returns what its digest is made of. Tensors that matter have a MiB and more.
"""

import concurrent.futures
import tempfile

import numpy as np
import tensorflow as tf

layers = tf.keras.layers
ROWS, WIDTH, CLASSES = 512, 512, 10


def pictures(rows=ROWS, width=WIDTH, seed=5):
    """Inputs and labels, the same each time."""
    random = np.random.RandomState(seed)
    return (random.standard_normal((rows, width)).astype(np.float32),
            (np.arange(rows) % CLASSES).astype(np.int64))


def cross_entropy():
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def compiled(model, optimizer=None, **options):
    model.compile(optimizer or tf.keras.optimizers.Adam(1e-3), cross_entropy(),
                  jit_compile=False, **options)
    return model


def mlp(*widths):
    return tf.keras.Sequential(
        [layers.Input([WIDTH])] + [layers.Dense(w, "relu") for w in widths] +
        [layers.Dense(CLASSES)])


def deep():
    """Half of what its training needs is far more than what one op does."""
    return mlp(WIDTH, WIDTH, WIDTH, WIDTH)


class Residual(tf.keras.Model):
    """Subclassed, with control flow in `call` and a weight of its own."""

    def __init__(self):
        super().__init__()
        self.inner = [layers.Dense(WIDTH, "tanh") for _ in range(3)]
        self.scale = self.add_weight(shape=[WIDTH], initializer="ones")
        self.out = layers.Dense(CLASSES)

    def call(self, x, training=False):
        for layer in self.inner:
            x = x + layer(x) * self.scale
            if training:
                x = tf.where(x > 3.0, 3.0, x)
        return self.out(x)


def keras_subclassed():
    model = compiled(Residual())
    x, y = pictures()
    history = model.fit(x, y, batch_size=ROWS, epochs=3, verbose=0)
    return [history.history["loss"], model.get_weights(), model(x)]


def keras_embedding():
    """Sparse gradients; a recurrent layer above them."""
    words = layers.Input([16], dtype="int64")
    rows = layers.concatenate(
        [layers.Embedding(1 << 14, 16)(words) for _ in range(4)])
    model = compiled(tf.keras.Model(
        words, layers.Dense(CLASSES)(layers.GRU(64)(rows))),
                     tf.keras.optimizers.Adagrad(0.1))
    x = np.random.RandomState(6).randint(0, 1 << 14, (ROWS, 16))
    history = model.fit(x, pictures()[1], batch_size=256, epochs=1, verbose=0)
    return [history.history["loss"], model.get_weights()]


def keras_recurrent():
    """A layer that loops over its input's steps."""
    model = compiled(tf.keras.Sequential(
        [layers.Input([10, 64]), layers.LSTM(256), layers.Dense(CLASSES)]))
    random = np.random.RandomState(7)
    x = random.standard_normal((2 * ROWS, 10, 64)).astype(np.float32)
    y = np.arange(len(x)) % CLASSES
    history = model.fit(x, y, batch_size=len(x), epochs=2, verbose=0)
    return [history.history["loss"], model.get_weights()]


def mixed_precision():
    """Half the bits, and a loss that is scaled."""
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = mlp(*[1024, WIDTH] * 3)
        optimizer = tf.keras.mixed_precision.LossScaleOptimizer(
            tf.keras.optimizers.SGD(0.01))
        compiled(model, optimizer)
        x, y = pictures()
        history = model.fit(x, y, batch_size=ROWS, epochs=3, verbose=0)
        return [history.history["loss"], model.get_weights()]
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")


def gradient_accumulation():
    """Four batches to one update."""
    model = mlp(WIDTH, WIDTH)
    optimizer = tf.keras.optimizers.AdamW(1e-3)
    optimizer.build(model.trainable_variables)
    sums = [tf.Variable(tf.zeros_like(v)) for v in model.trainable_variables]
    loss_of = cross_entropy()

    @tf.function
    def accumulate(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True)) / 4.0
        for total, gradient in zip(
                sums, tape.gradient(loss, model.trainable_variables)):
            total.assign_add(gradient)
        return loss

    @tf.function
    def update():
        optimizer.apply(sums, model.trainable_variables)
        for total in sums:
            total.assign(tf.zeros_like(total))

    x, y = pictures(4 * ROWS)
    losses = []
    for _ in range(2):
        for i in range(0, len(x), ROWS):
            losses.append(accumulate(x[i:i + ROWS], y[i:i + ROWS]))
        update()
    return [losses, model.get_weights()]


def optimizers():
    """All that Keras has, with moving averages of the weights in one."""
    kinds = tf.keras.optimizers
    results = []
    for optimizer in [
            kinds.SGD(0.01, momentum=0.9, nesterov=True), kinds.RMSprop(1e-3),
            kinds.Adadelta(1.0), kinds.Adafactor(1e-3), kinds.Nadam(1e-3),
            kinds.Ftrl(1e-3), kinds.Lion(1e-4), kinds.Adamax(1e-3),
            kinds.Lamb(1e-3),
            kinds.Adam(1e-3, amsgrad=True, use_ema=True, clipnorm=1.0,
                       ema_overwrite_frequency=2)]:
        weight = tf.Variable(tf.random.stateless_normal([512, 512], [1, 2]))
        optimizer.build([weight])

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.matmul(x, weight)))
            optimizer.apply([tape.gradient(loss, weight)], [weight])
            return loss

        results += [step(tf.random.stateless_normal([64, 512], [3, i]))
                    for i in range(2)] + [weight]
    return results


def evaluation_and_early_stopping():
    """Validation between epochs; the best weights come back at the end."""
    model = compiled(deep(), metrics=["accuracy"])
    x, y = pictures(2 * ROWS)
    stop = tf.keras.callbacks.EarlyStopping(
        "val_loss", patience=1, restore_best_weights=True)
    history = model.fit(x[:ROWS], y[:ROWS], batch_size=ROWS, epochs=6,
                        validation_data=(x[ROWS:], y[ROWS:]),
                        validation_batch_size=ROWS, verbose=0, callbacks=[stop])
    return [history.history["val_loss"], model.get_weights(),
            model.evaluate(x, y, batch_size=ROWS, verbose=0)]


def two_models():
    """Each learns from the other, as in adversarial training."""
    maker, judge = deep(), tf.keras.Sequential(
        [layers.Input([CLASSES]), layers.Dense(WIDTH, "relu"), layers.Dense(1)])
    optimizers_of = [tf.keras.optimizers.Adam(1e-3) for _ in range(2)]
    for optimizer, model in zip(optimizers_of, (maker, judge)):
        optimizer.build(model.trainable_variables)

    @tf.function
    def step(x, real):
        with tf.GradientTape(persistent=True) as tape:
            made = maker(x)
            good, bad = judge(real), judge(made)
            of_judge = tf.reduce_mean(tf.nn.softplus(-good) +
                                      tf.nn.softplus(bad))
            of_maker = tf.reduce_mean(tf.nn.softplus(-bad))
        for optimizer, model, loss in zip(optimizers_of, (maker, judge),
                                          (of_maker, of_judge)):
            optimizer.apply(tape.gradient(loss, model.trainable_variables),
                            model.trainable_variables)
        return of_maker, of_judge

    x, _ = pictures()
    real, _ = pictures(ROWS, CLASSES, seed=8)
    return [step(x, real) for _ in range(3)] + [maker.get_weights(),
                                                judge.get_weights()]


def generator_input():
    """A Python generator's elements, mapped, shuffled, batched, prefetched."""
    def rows():
        for i in range(16):
            yield (np.random.RandomState(i).standard_normal(
                [128, WIDTH]).astype(np.float32), np.full([128], i % CLASSES))

    data = tf.data.Dataset.from_generator(
        rows, output_signature=(tf.TensorSpec([128, WIDTH], tf.float32),
                                tf.TensorSpec([128], tf.int64)))
    data = data.map(lambda x, y: (tf.tanh(x) * 2.0, y), num_parallel_calls=2)
    data = data.unbatch().shuffle(512, seed=4).batch(ROWS).prefetch(2)
    model = compiled(deep())
    history = model.fit(data, epochs=2, verbose=0)
    return [history.history["loss"], model.get_weights()]


def served_model():
    """A training, its checkpoint, and the SavedModel that serves it."""
    model = compiled(deep())
    x, y = pictures(2 * ROWS)
    model.fit(x, y, batch_size=len(x), epochs=1, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder + "/served", verbose=False)
        served = tf.saved_model.load(folder + "/served")
        model.save_weights(folder + "/m.weights.h5")
        before = model.get_weights()
        model.fit(x, y, batch_size=len(x), epochs=1, verbose=0)
        model.load_weights(folder + "/m.weights.h5")
        return [served.serve(x), served.signatures["serving_default"](
            tf.constant(x)), before, model(x), model.get_weights()]


def two_threads():
    """Two trainings at once in one process."""
    models = [compiled(mlp(1024)) for _ in range(2)]

    def train(i):
        x, y = pictures(seed=i)
        history = models[i].fit(x, y, batch_size=ROWS, epochs=4, verbose=0,
                                shuffle=False)
        return [history.history["loss"], models[i].get_weights()]

    with concurrent.futures.ThreadPoolExecutor() as at_once:
        return list(at_once.map(train, range(2)))


LARGE = [keras_subclassed, keras_embedding, keras_recurrent, mixed_precision,
         gradient_accumulation, optimizers, evaluation_and_early_stopping,
         two_models, generator_input, served_model, two_threads]
