"""XLNet's language model (Yang et al. 2019): each sentence's words are foretold
in a random order, with attention in two streams."""

import data
import keras
import numpy as np
from attention import Tokens, dense, normalised, waves
from keras import Model, layers, ops
from task import Task, cross_entropy, mean_of


class RelativeAttention(layers.Layer):
    """Attention by content and by distance (Dai et al. 2019), with weights that
    both streams share. Gets queries, content and who may see whom."""

    def __init__(self, heads, width, drop):
        super().__init__()
        self._heads, self._width = heads, width
        self._size = width // heads
        self._drop = layers.Dropout(drop)

    def build(self, shape):
        def weight(name, *axes):
            return self.add_weight(shape=axes, name=name,
                                   initializer="glorot_uniform")

        form = (self._width, self._heads, self._size)
        self._query, self._key, self._value, self._place, self._out = (
            weight(name, *form)
            for name in ("query", "key", "value", "place", "out"))
        self._by_content = weight("by_content", self._heads, self._size)
        self._by_place = weight("by_place", self._heads, self._size)
        length = shape[1]
        self._distances = waves(np.arange(length, -length, -1), self._width)

    def call(self, asking, content, mask):
        length = content.shape[1]
        query = ops.einsum("bid,dhe->bihe", asking, self._query)
        key = ops.einsum("bjd,dhe->bjhe", content, self._key)
        value = ops.einsum("bjd,dhe->bjhe", content, self._value)
        place = ops.einsum("ld,dhe->lhe", self._distances, self._place)
        scores = ops.einsum("bihe,bjhe->bhij", query + self._by_content, key)
        far = ops.einsum("bihe,lhe->bhil", query + self._by_place, place)
        scores = (scores + self._aligned(far, length)) / self._size ** 0.5
        scores = ops.where(mask[:, None], scores, -1e9)
        seen = self._drop(ops.softmax(scores))
        found = ops.einsum("bhij,bjhe->bihe", seen, value)
        return ops.einsum("bihe,dhe->bid", found, self._out)

    def _aligned(self, far, length):
        """Column j of row i becomes the score of distance i - j: each row moves
        left by one more than the row below, as in Transformer-XL."""
        heads = self._heads
        far = ops.reshape(far, [-1, heads, 2 * length, length])[:, :, 1:]
        far = ops.reshape(far, [-1, heads, length, 2 * length - 1])
        return far[..., :length]


def xlnet(rows, length=128, words=32_000, width=768, depth=12, heads=12,
          drop=0.1, foretold=1 / 6):
    """XLNet base, without the memory of earlier segments. `foretold`: the part
    of the places that are foretold, the last in the order."""
    tokens = layers.Input([length], name="token", dtype="int32")
    # Each place's rank in the order.
    ranks = layers.Input([length], name="rank", dtype="int32")
    before = ranks[:, :, None] > ranks[:, None, :]
    same = ranks[:, :, None] == ranks[:, None, :]
    table = Tokens(words, width)
    x = layers.Dropout(drop)(table(tokens))
    # The query stream begins without the words: one vector for all places.
    g = layers.Dropout(drop)(layers.Embedding(1, width)(ops.zeros_like(tokens)))
    for _ in range(depth):
        attend = RelativeAttention(heads, width, drop)
        hidden, out = dense(4 * width, "gelu"), dense(width)
        norms = [layers.LayerNormalization(epsilon=1e-6) for _ in range(2)]

        def layer(stream, mask):
            stream = norms[0](stream + attend(stream, x, mask))
            return norms[1](stream + layers.Dropout(drop)(out(hidden(stream))))

        x, g = layer(x, ops.logical_or(before, same)), layer(g, before)
    texts, _ = data.translations(rows, length, words)
    order = data.random().permuted(
        np.tile(np.arange(length, dtype=np.int32), (rows, 1)), axis=1)
    last = order >= length - max(1, round(length * foretold))

    def loss(logits, targets):
        return mean_of(cross_entropy(targets["word"], logits),
                       targets["foretold"])

    return Task(Model({"token": tokens, "rank": ranks},
                      table(normalised(g), reverse=True)),
                {"token": texts, "rank": order},
                {"word": texts, "foretold": last}, loss, 3e-4)
