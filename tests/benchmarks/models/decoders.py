"""Models that write: a translator, and a summariser of several articles."""

import data
import keras
import numpy as np
from attention import EncoderLayer, Places, Tokens, dense, normalised, waves
from keras import Model, layers, ops
from task import Task, cross_entropy


def shifted(tokens):
    """What a decoder sees while it writes `tokens`: a 0, then all but the
    last."""
    return np.pad(tokens[:, :-1], [(0, 0), (1, 0)])


def _smoothed(logits, targets):
    """Cross entropy with labels smoothed by 0.1."""
    flat = -keras.ops.mean(keras.ops.log_softmax(logits), axis=-1)
    return keras.ops.mean(
        0.9 * cross_entropy(targets["word"], logits) + 0.1 * flat)


def transformer(rows, length=64, words=32_000, width=512, depth=6, heads=8,
                drop=0.1):
    """Transformer base (Vaswani et al. 2017), translating; layers normalise
    first, as its reference code does."""
    source = layers.Input([length], name="source", dtype="int32")
    written = layers.Input([length], name="written", dtype="int32")
    table, places = Tokens(words, width), waves(np.arange(length), width)

    def embedded(tokens):
        return layers.Dropout(drop)(table(tokens) * width ** 0.5 + places)

    def layer(**more):
        return EncoderLayer(heads, width, 4 * width, drop, "relu", first=True,
                            **more)

    memory, x = embedded(source), embedded(written)
    for _ in range(depth):
        memory = layer()(memory)
    memory = normalised(memory)
    for _ in range(depth):
        x = layer(crossing=True)(x, memory, causal=True)
    logits = table(normalised(x), reverse=True)
    sources, words_of = data.translations(rows, length, words)
    return Task(Model({"source": source, "written": written}, logits),
                {"source": sources, "written": shifted(words_of)},
                {"word": words_of}, _smoothed)


def nhnet(rows, articles=5, length=200, headline=15, words=30_522, width=768,
          depth=12, written_depth=12, heads=16, drop=0.1):
    """A headline for several articles of one event (NHNet: Gu et al. 2020). A
    BERT encodes each; the decoder attends to each article and weighs what it
    finds by how much the article belongs to the event. NHNet's decoder starts
    from the encoder's weights; here both start at random."""
    texts = layers.Input([articles, length], name="text", dtype="int32")
    written = layers.Input([headline], name="written", dtype="int32")
    table = Tokens(words, width)

    def embedded(tokens):
        return layers.Dropout(drop)(normalised(Places()(table(tokens))))

    def layer(**more):
        return EncoderLayer(heads, width, 4 * width, drop, **more)

    memory = embedded(ops.reshape(texts, [-1, length]))
    for _ in range(depth):
        memory = layer()(memory)
    memory = ops.reshape(memory, [-1, articles, length, width])
    firsts = memory[:, :, 0]
    event = dense(width)(ops.mean(firsts, axis=1, keepdims=True))
    weights = ops.softmax(ops.sum(event * dense(width)(firsts), axis=-1)
                          / width ** 0.5)

    def cross(attend, x, memory):
        found = [attend(x, memory[:, i]) * weights[:, i, None, None]
                 for i in range(articles)]
        return layers.Add()(found)

    x = embedded(written)
    for _ in range(written_depth):
        x = layer(crossing=True)(x, memory, causal=True, cross=cross)
    articles_of, headlines = data.stories(rows, articles, length, headline,
                                          words)
    return Task(Model({"text": texts, "written": written},
                      table(x, reverse=True)),
                {"text": articles_of, "written": shifted(headlines)},
                {"word": headlines}, _smoothed, 3e-4)
