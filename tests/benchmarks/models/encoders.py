"""Encoders of texts: BERT and ALBERT, with heads that classify a text or find an
answer's span in it."""

import data
import keras
from attention import EncoderLayer, Places, Tokens, dense, normalised
from keras import Model, layers, ops
from task import Task, classification, cross_entropy

CLASSES = 4


def encode(tokens, words, embedding, width, depth, heads, drop, shared):
    """Each token's features after `depth` layers, which `shared` makes one."""
    length = tokens.shape[1]
    x = Tokens(words, embedding)(tokens)
    # Which of two sentences a token belongs to: here all belong to the first.
    segments = layers.Embedding(2, embedding)(ops.zeros_like(tokens))
    x = normalised(Places()(x + segments))
    x = layers.Dropout(drop)(x)
    if embedding != width:
        x = dense(width)(x)
    layer = None
    for _ in range(depth):
        if layer is None or not shared:
            layer = EncoderLayer(heads, width, 4 * width, drop)
        x = layer(x)
    assert x.shape[1] == length
    return x


def _classifier(rows, length, words, **sizes):
    tokens = layers.Input([length], name="token", dtype="int32")
    x = encode(tokens, words, **sizes)
    pooled = dense(sizes["width"], "tanh")(x[:, 0])
    logits = dense(CLASSES)(layers.Dropout(sizes["drop"])(pooled))
    texts, labels = data.sentences(rows, length, words, CLASSES)
    return Task(Model({"token": tokens}, logits), {"token": texts}, {"label": labels},
                classification, 3e-4)


def _span_loss(logits, targets):
    return keras.ops.mean(sum(
        cross_entropy(targets[end], logits[:, :, i])
        for i, end in enumerate(("first", "last"))))


def _span_finder(rows, length, words, **sizes):
    tokens = layers.Input([length], name="token", dtype="int32")
    logits = dense(2)(encode(tokens, words, **sizes))
    texts, first, last = data.spans(rows, length, words)
    return Task(Model({"token": tokens}, logits), {"token": texts},
                {"first": first, "last": last}, _span_loss, 3e-4)


def bert(rows, length=128, words=30_522, width=768, depth=12, heads=12,
         drop=0.1):
    """BERT base (Devlin et al. 2019), classifying texts."""
    return _classifier(rows, length, words, embedding=width, width=width,
                       depth=depth, heads=heads, drop=drop, shared=False)


def bert_span(rows, length=384, words=30_522, width=768, depth=12, heads=12,
              drop=0.1):
    """BERT base, finding spans."""
    return _span_finder(rows, length, words, embedding=width, width=width,
                        depth=depth, heads=heads, drop=drop, shared=False)


def albert(rows, length=128, words=30_000, embedding=128, width=768, depth=12,
           heads=12, drop=0.0):
    """ALBERT base (Lan et al. 2020), classifying texts: one layer's weights in
    all layers, and a narrow embedding."""
    return _classifier(rows, length, words, embedding=embedding, width=width,
                       depth=depth, heads=heads, drop=drop, shared=True)


def albert_span(rows, length=384, words=30_000, embedding=128, width=768,
                depth=12, heads=12, drop=0.0):
    """ALBERT base, finding spans."""
    return _span_finder(rows, length, words, embedding=embedding, width=width,
                        depth=depth, heads=heads, drop=drop, shared=True)
