"""What the models of texts are built of."""

import keras
import numpy as np
from keras import layers, ops


class Places(layers.Layer):
    """Adds what is learnt of each place in the sequence."""

    def build(self, shape):
        self.table = self.add_weight(shape=shape[1:], name="table",
                                     initializer=_initializer())

    def call(self, x):
        return x + self.table


class Tokens(layers.Layer):
    """Embeds tokens; `reverse=True` gives logits of tokens by the same table."""

    def __init__(self, words, width):
        super().__init__()
        self._shape = (words, width)

    def build(self, _):
        self.table = self.add_weight(shape=self._shape, name="table",
                                     initializer=_initializer())

    def call(self, x, reverse=False):
        if reverse:
            return ops.matmul(x, ops.transpose(self.table))
        return ops.take(self.table, x, axis=0)


def _initializer():
    return keras.initializers.TruncatedNormal(stddev=0.02)


def dense(units, activation=None):
    return layers.Dense(units, activation, kernel_initializer=_initializer())


def normalised(x):
    return layers.LayerNormalization(epsilon=1e-6)(x)


def waves(places, width):
    """The sines and cosines of places or distances (Vaswani et al. 2017)."""
    angle = places[:, np.newaxis] / 10_000 ** (np.arange(0, width, 2) / width)
    return np.concatenate([np.sin(angle), np.cos(angle)],
                          axis=-1).astype(np.float32)


class EncoderLayer:
    """Attention and a perceptron, each added to what it gets and normalised
    behind (as BERT) or before (`first=True`). Calling it again applies the same
    weights again."""

    def __init__(self, heads, width, hidden, drop, activation="gelu",
                 first=False, crossing=False):
        self._first = first
        self._attend = self._attention(heads, width, drop)
        self._cross = self._attention(heads, width, drop) if crossing else None
        self._hidden, self._out = dense(hidden, activation), dense(width)
        self._drop = layers.Dropout(drop)
        self._norms = [layers.LayerNormalization(epsilon=1e-6)
                       for _ in range(3 if crossing else 2)]

    @staticmethod
    def _attention(heads, width, drop):
        return layers.MultiHeadAttention(heads, width // heads, dropout=drop,
                                         kernel_initializer=_initializer())

    def _around(self, norm, x, part):
        if self._first:
            return x + self._drop(part(norm(x)))
        return norm(x + self._drop(part(x)))

    def __call__(self, x, memory=None, causal=False, cross=None):
        """`memory` is what a decoder's layer attends to, by `cross(attention, x,
        memory)` if that is given."""
        x = self._around(self._norms[0], x, lambda x: self._attend(
            x, x, use_causal_mask=causal))
        if self._cross is not None:
            cross = cross or (lambda attend, x, memory: attend(x, memory))
            x = self._around(self._norms[2], x, lambda x: cross(
                self._cross, x, memory))
        return self._around(self._norms[1], x, lambda x: self._out(
            self._hidden(x)))
