"""Anchor boxes: where they are, what they should say, and back. Boxes are top,
left, bottom, right in pixels."""

import numpy as np
import tensorflow as tf


def anchors(side, strides, scales, ratios=(0.5, 1, 2)):
    """(anchors, 4): for each stride, each of its places (rows first) and each
    of its sizes, one. Sizes are scale × stride × 4."""
    boxes = []
    for stride in strides:
        centre = (np.arange(-(-side // stride)) + 0.5) * stride
        y, x = np.meshgrid(centre, centre, indexing="ij")
        for_each = []
        for scale in scales:
            for ratio in ratios:
                height = 4 * stride * scale * ratio ** 0.5
                width = 4 * stride * scale / ratio ** 0.5
                for_each.append(np.stack(
                    [y - height / 2, x - width / 2,
                     y + height / 2, x + width / 2], axis=-1))
        boxes.append(np.stack(for_each, axis=2).reshape(-1, 4))
    return np.concatenate(boxes).astype(np.float32)


def overlaps(boxes, others):
    """(…, boxes, others): intersection over union, 0 where both are empty."""
    a, b = boxes[..., :, None, :], others[..., None, :, :]
    sides = tf.nn.relu(tf.minimum(a[..., 2:], b[..., 2:])
                       - tf.maximum(a[..., :2], b[..., :2]))
    shared = sides[..., 0] * sides[..., 1]
    area_a, area_b = (
        (x[..., 2] - x[..., 0]) * (x[..., 3] - x[..., 1]) for x in (a, b))
    return tf.math.divide_no_nan(shared, area_a + area_b - shared)


def _centre_and_size(boxes):
    size = tf.maximum(boxes[..., 2:] - boxes[..., :2], 1e-3)
    return boxes[..., :2] + size / 2, size


def encode(boxes, at):
    """How the boxes differ from those they are told by."""
    centre, size = _centre_and_size(boxes)
    at_centre, at_size = _centre_and_size(at)
    return tf.concat([(centre - at_centre) / at_size,
                      tf.math.log(size / at_size)], axis=-1)


def decode(deltas, at, side):
    """The boxes that differ so, cut to the picture."""
    at_centre, at_size = _centre_and_size(at)
    centre = deltas[..., :2] * at_size + at_centre
    half = tf.exp(tf.minimum(deltas[..., 2:], 4.0)) * at_size / 2
    return tf.clip_by_value(tf.concat([centre - half, centre + half], axis=-1),
                            0, side)


def match(at, boxes, classes, low, high):
    """What anchors `at` should say of boxes (rows, boxes, 4): their class, 0
    for none, -1 where it does not matter, and how the box differs.

    An anchor stands for the box that it overlaps most, if by `high`, and the
    best anchor of each box in any case; by less than `low`, for none.
    """
    labels, deltas = [], []
    for row_boxes, row_classes in zip(boxes, classes):
        overlap = overlaps(at, row_boxes).numpy()
        best, of_box = overlap.max(axis=1), overlap.argmax(axis=1)
        label = np.where(best >= high, row_classes[of_box],
                         np.where(best < low, 0, -1))
        best_of_box = overlap.argmax(axis=0)
        of_box[best_of_box] = np.arange(len(row_boxes))
        label[best_of_box] = row_classes
        labels.append(label.astype(np.int32))
        deltas.append(encode(row_boxes[of_box], at).numpy())
    return np.stack(labels), np.stack(deltas)
