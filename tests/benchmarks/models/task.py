"""What a model of the zoo is to the runner."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np


@dataclasses.dataclass
class Task:
    """A model, the rows that it learns from, and its loss.

    `inputs` are the model's, by name; `targets` are what only the loss sees.
    The first axis of each array is the rows. `loss(outputs, targets)` gives a
    scalar.
    """
    model: keras.Model
    inputs: dict[str, np.ndarray]
    targets: dict[str, np.ndarray]
    loss: Callable
    learning_rate: float = 1e-3


def mean_of(losses, weights):
    """Their weighted mean; 0 if all weights are."""
    weights = keras.ops.cast(weights, losses.dtype)
    return (keras.ops.sum(losses * weights)
            / keras.ops.maximum(keras.ops.sum(weights), 1))


def cross_entropy(labels, logits):
    return keras.ops.sparse_categorical_crossentropy(labels, logits,
                                                     from_logits=True)


def classification(outputs, targets):
    """The loss of a model whose only output are logits of `label`."""
    return keras.ops.mean(cross_entropy(targets["label"], outputs))
