"""The zoo: each model's function, and what makes it small enough for a CPU.

The functions' own defaults are the published sizes. Each takes `rows`, how many
examples to make, and its sizes, and gives a Task.
"""

import dataclasses
from collections.abc import Callable

import decoders
import detection
import encoders
import recommend
import vision
import xlnet


@dataclasses.dataclass
class Entry:
    make: Callable
    batch: int        # At full size.
    small_batch: int
    small: dict       # Its sizes when small.


_SMALL_TEXT = dict(length=32, words=500, width=64, depth=2, heads=4)
_SMALL_DETECTOR = dict(side=128, width=8, depths=(1, 1, 1, 1), channels=16,
                       objects=3)

MODELS = {
    "mnist_cnn": Entry(vision.mnist_cnn, 128, 32, {}),
    "resnet50": Entry(vision.resnet50, 64, 16, dict(
        side=32, width=8, depths=(1, 1, 1, 1), classes=10)),
    "efficientnet_b0": Entry(vision.efficientnet_b0, 64, 16, dict(
        side=64, width=0.5, depth=0.3, classes=10)),
    "retinanet": Entry(detection.retinanet, 8, 4, dict(
        _SMALL_DETECTOR, depth=2)),
    "mask_rcnn": Entry(detection.mask_rcnn, 2, 2, dict(
        _SMALL_DETECTOR, proposals=32, dense=64)),
    "shapemask": Entry(detection.shapemask, 2, 2, dict(
        _SMALL_DETECTOR, proposals=32, dense=64)),
    "bert": Entry(encoders.bert, 32, 32, _SMALL_TEXT),
    "bert_span": Entry(encoders.bert_span, 12, 32, _SMALL_TEXT),
    "albert": Entry(encoders.albert, 32, 32, dict(_SMALL_TEXT, embedding=32)),
    "albert_span": Entry(encoders.albert_span, 12, 32, dict(
        _SMALL_TEXT, embedding=32)),
    "transformer": Entry(decoders.transformer, 64, 32, dict(
        _SMALL_TEXT, depth=1)),
    "nhnet": Entry(decoders.nhnet, 8, 8, dict(
        _SMALL_TEXT, depth=1, articles=3, headline=8, written_depth=1)),
    "xlnet": Entry(xlnet.xlnet, 16, 32, _SMALL_TEXT),
    "ncf": Entry(recommend.ncf, 65_536, 512, dict(
        users=500, items=400, factors=16, hidden=(64, 64, 32, 16))),
}


def make(name, batches, size="full", batch=None, **sizes):
    """The task of `batches` batches, and the batch size. `sizes` go before
    what `size` says."""
    entry = MODELS[name]
    small = size == "small"
    batch = batch or (entry.small_batch if small else entry.batch)
    sizes = {**(entry.small if small else {}), **sizes}
    return entry.make(batch * batches, **sizes), batch
