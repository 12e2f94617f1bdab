"""Models that find things in pictures: RetinaNet, Mask R-CNN, and Mask R-CNN
with ShapeMask's mask head."""

import math

import data
import keras
from anchors import anchors, match
from keras import Model, layers, ops
from regions import MaskHead, RegionHeads, ShapeMaskHead
from task import Task, cross_entropy, mean_of
from vision import resnet


def pyramid(stages, channels, coarser):
    """A feature pyramid (Lin et al. 2017), finest first, and `coarser` more
    levels on top."""
    merged = [layers.Conv2D(channels, 1)(stage) for stage in stages]
    for i in reversed(range(len(merged) - 1)):
        merged[i] = layers.Add()([merged[i],
                                  layers.UpSampling2D()(merged[i + 1])])
    levels = [layers.Conv2D(channels, 3, padding="same")(x) for x in merged]
    for _ in range(coarser):
        levels.append(layers.Conv2D(channels, 3, 2, padding="same")(levels[-1]))
    return levels


def _tower(depth, channels, out, bias="zeros"):
    """Convolutions that all levels of a pyramid share."""
    return keras.Sequential(
        [layers.Input([None, None, channels])]
        + [layers.Conv2D(channels, 3, padding="same", activation="relu")
           for _ in range(depth)]
        + [layers.Conv2D(out, 3, padding="same",
                         kernel_initializer=keras.initializers.RandomNormal(
                             stddev=0.01), bias_initializer=bias)])


def _over_levels(tower, levels, size):
    """What the tower says of each anchor: `size` numbers."""
    each = tower.layers[-1].filters // size
    return layers.Concatenate(axis=1)([
        ops.reshape(tower(level),
                    [-1, math.prod(level.shape[1:3]) * each, size])
        for level in levels])


def _smooth(deltas, told):
    """Huber loss of a box."""
    error = ops.abs(deltas - told)
    return ops.sum(ops.where(error < 1, 0.5 * error ** 2, error - 0.5), axis=-1)


def _focal_loss(outputs, targets):
    """Lin et al. 2017, with alpha 0.25 and gamma 2."""
    label, logits = targets["label"], outputs["logits"]
    truth = ops.one_hot(label - 1, data.SHAPES)
    probability = ops.sigmoid(logits)
    miss = ops.abs(truth - probability)
    weight = ops.where(truth > 0, 0.25, 0.75) * miss ** 2
    loss = weight * (ops.softplus(logits) - truth * logits)
    counted = ops.cast(label >= 0, loss.dtype)[..., None]
    things = ops.maximum(ops.sum(ops.cast(label > 0, loss.dtype)), 1)
    boxes = _smooth(outputs["deltas"], targets["deltas"])
    return (ops.sum(loss * counted) / things + mean_of(boxes, label > 0))


def retinanet(rows, side=640, width=64, depths=(3, 4, 6, 3), channels=256,
              depth=4, objects=4):
    """RetinaNet with a ResNet-50 (Lin et al. 2017)."""
    inputs = layers.Input([side, side, 3], name="picture")
    levels = pyramid(resnet(inputs, width, depths)[1:], channels, 2)
    strides = [8, 16, 32, 64, 128]
    scales = [2 ** (i / 3) for i in range(3)]
    # So that all is background at first, with a probability of 0.99.
    rare = keras.initializers.Constant(-math.log(99))
    logits = _tower(depth, channels, 9 * data.SHAPES, rare)
    deltas = _tower(depth, channels, 9 * 4)
    model = Model({"picture": inputs}, {
        "logits": _over_levels(logits, levels, data.SHAPES),
        "deltas": _over_levels(deltas, levels, 4)})
    pictures, boxes, classes = data.scenes(rows, side, objects)
    label, told = match(anchors(side, strides, scales), boxes, classes, 0.4,
                        0.5)
    return Task(model, {"picture": pictures}, {"label": label, "deltas": told},
                _focal_loss)


def _mask_rcnn_loss(outputs, targets):
    label, logits = targets["label"], outputs["logits"][..., 0]
    truth = ops.cast(label > 0, logits.dtype)
    objectness = mean_of(ops.softplus(logits) - truth * logits, label >= 0)
    proposals = mean_of(_smooth(outputs["deltas"], targets["deltas"]),
                        label > 0)
    found, thing = outputs["class"], outputs["class"] > 0
    classes = ops.mean(cross_entropy(found, outputs["class_logits"]))
    boxes = mean_of(_smooth(outputs["box"], outputs["box_told"]), thing)
    masks = sum(mean_of(ops.mean(ops.binary_crossentropy(
        outputs["mask_told"], mask, from_logits=True), axis=(-1, -2)),
        outputs["mask_of"]) for mask in outputs["masks"])
    return objectness + proposals + classes + boxes + masks


def mask_rcnn(rows, side=1024, width=64, depths=(3, 4, 6, 3), channels=256,
              proposals=512, dense=1024, objects=4, mask_head=MaskHead):
    """Mask R-CNN with a ResNet-50 and a feature pyramid (He et al. 2017). All
    proposals that remain are learnt from; the paper draws some at random."""
    picture = layers.Input([side, side, 3], name="picture")
    boxes = layers.Input([objects, 4], name="boxes")
    classes = layers.Input([objects], name="classes", dtype="int32")
    levels = pyramid(resnet(picture, width, depths), channels, 0)
    levels.append(layers.MaxPooling2D(1, 2)(levels[-1]))
    at = anchors(side, [4, 8, 16, 32, 64], [1])
    shared = layers.Conv2D(channels, 3, padding="same", activation="relu")
    seen = [shared(level) for level in levels]
    outputs = {"logits": _over_levels(_tower(0, channels, 3), seen, 1),
               "deltas": _over_levels(_tower(0, channels, 3 * 4), seen, 4)}
    heads = RegionHeads(side, at, proposals, channels, dense, mask_head)
    outputs |= heads(levels[:4], outputs["logits"], outputs["deltas"], boxes,
                     classes)
    pictures, boxes_of, classes_of = data.scenes(rows, side, objects)
    label, told = match(at, boxes_of, classes_of, 0.3, 0.7)
    return Task(Model({"picture": picture, "boxes": boxes, "classes": classes},
                      outputs),
                {"picture": pictures, "boxes": boxes_of, "classes": classes_of},
                {"label": label, "deltas": told}, _mask_rcnn_loss)


def shapemask(rows, **sizes):
    """Mask R-CNN's detector with the mask head of ShapeMask (Kuo et al. 2019)."""
    return mask_rcnn(rows, mask_head=ShapeMaskHead, **sizes)
