"""Models that recommend."""

import data
import keras
from keras import Model, layers
from task import Task


def _loss(outputs, targets):
    return keras.ops.mean(keras.ops.binary_crossentropy(
        targets["liked"][:, None], outputs, from_logits=True))


def ncf(rows, users=138_493, items=26_744, factors=64,
        hidden=(256, 256, 128, 64)):
    """NeuMF (He et al. 2017): matrix factorisation beside a perceptron. Users
    and items are as many as in MovieLens 20M."""
    user = layers.Input([], name="user", dtype="int32")
    item = layers.Input([], name="item", dtype="int32")
    product = layers.Multiply()([layers.Embedding(users, factors)(user),
                                 layers.Embedding(items, factors)(item)])
    x = layers.Concatenate()([
        layers.Embedding(users, hidden[0] // 2)(user),
        layers.Embedding(items, hidden[0] // 2)(item)])
    for units in hidden[1:]:
        x = layers.Dense(units, activation="relu")(x)
    logit = layers.Dense(1)(layers.Concatenate()([product, x]))
    user_ids, item_ids, liked = data.ratings(rows, users, items)
    return Task(Model({"user": user, "item": item}, logit),
                {"user": user_ids, "item": item_ids}, {"liked": liked}, _loss,
                3e-3)
