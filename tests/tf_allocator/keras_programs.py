"""Trainings of Keras' kinds of layers, for workloads.py.

Each returns what its digest is made of.
"""

import tempfile

import numpy as np
import tensorflow as tf

from graph_programs import normal, normal_numpy

layers = tf.keras.layers


def fit(model, shape, jit=False):
    model.compile(
        tf.keras.optimizers.Adam(0.01),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"], jit_compile=jit)
    x = normal_numpy([96] + shape)
    y = np.arange(96) % 10
    history = model.fit(x, y, batch_size=32, epochs=3, verbose=0)
    return [history.history["loss"], model.get_weights(), model.predict(
        x, batch_size=40, verbose=0)]


def keras_mlp():
    return fit(tf.keras.Sequential(
        [layers.Dense(256, "relu"), layers.Dropout(0.2, seed=3),
         layers.Dense(256, "gelu"), layers.LayerNormalization(),
         layers.Dense(10)]), [256])


def keras_conv():
    return fit(tf.keras.Sequential(
        [layers.Conv2D(32, 3, padding="same"), layers.BatchNormalization(),
         layers.ReLU(), layers.MaxPooling2D(),
         layers.DepthwiseConv2D(3), layers.Conv2D(32, 3, activation="relu"),
         layers.GlobalAveragePooling2D(), layers.Dense(10)]), [24, 24, 3])


def keras_lstm():
    return fit(tf.keras.Sequential(
        [layers.LSTM(64), layers.Dense(10)]), [12, 32])


def keras_attention():
    x = y = layers.Input([64, 128])
    for _ in range(2):
        y = layers.LayerNormalization()(
            y + layers.MultiHeadAttention(4, 32)(y, y))
    y = layers.Dense(10)(layers.Flatten()(y))
    return fit(tf.keras.Model(x, y), [64, 128])


def keras_xla():
    """The whole step is one XLA program."""
    return fit(tf.keras.Sequential(
        [layers.Dense(128, "relu"), layers.Dense(10)]), [128], jit=True)


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


# Those with tensors of a MiB and more.
LARGE = [keras_conv, keras_attention]
SMALL = [keras_mlp, keras_lstm, keras_xla, save_load]
