"""What Mask R-CNN does with regions of a picture: it proposes some, cuts their
features out, and says what is in them, where, and in which shape."""

import data
import keras
import tensorflow as tf
from anchors import decode, encode, overlaps
from keras import layers

MASKED = 4  # One in so many regions gets a mask: the ones that fit best.


def propose(logits, deltas, at, side, count):
    """The `count` best boxes (rows, count, 4) that do not overlap much; where
    there are fewer, the rest are empty."""
    scores, places = tf.math.top_k(tf.sigmoid(logits[..., 0]),
                                   min(4 * count, len(at)))
    boxes = decode(tf.gather(deltas, places, batch_dims=1),
                   tf.gather(at, places), side)
    kept, valid = tf.image.non_max_suppression_padded(
        boxes, scores, count, 0.7, pad_to_max_output_size=True,
        sorted_input=True, canonicalized_coordinates=True)
    boxes = tf.gather(boxes, kept, batch_dims=1)
    exist = tf.sequence_mask(valid, count)[..., None]
    return tf.stop_gradient(tf.where(exist, boxes, 0.0))


def cut_out(levels, boxes, size):
    """ROIAlign: (rows, boxes, size, size, channels), each from the level that
    fits the box's size, interpolated between its four nearest places."""
    rows, strides = tf.shape(boxes)[0], [4, 8, 16, 32]
    sides = tf.constant([level.shape[1] for level in levels])
    flat = tf.concat([tf.reshape(level, [rows, -1, level.shape[-1]])
                      for level in levels], axis=1)
    starts = tf.cumsum(sides * sides, exclusive=True)
    extent = boxes[..., 2:] - boxes[..., :2]
    area = tf.maximum(extent[..., 0] * extent[..., 1], 1.0)
    level = tf.cast(tf.floor(4 + tf.math.log(tf.sqrt(area) / 224)
                             / tf.math.log(2.0)), tf.int32)
    level = tf.clip_by_value(level - 2, 0, 3)
    stride = tf.gather(tf.cast(strides, tf.float32), level)[..., None, None]
    side = tf.gather(sides, level)[..., None, None]
    steps = (tf.range(size, dtype=tf.float32) + 0.5) / size
    # (rows, boxes, 2, size): places between those of the level.
    place = (boxes[..., :2, None] + extent[..., None] * steps) / stride - 0.5
    place = tf.clip_by_value(place, 0.0, tf.cast(side - 1, tf.float32))
    low = tf.cast(place, tf.int32)
    high = tf.minimum(low + 1, side - 1)
    part = place - tf.cast(low, tf.float32)
    result = 0.0
    for y, part_y in ((low, 1 - part), (high, part)):
        for x, part_x in ((low, 1 - part), (high, part)):
            index = (tf.gather(starts, level)[..., None, None]
                     + y[..., 0, :, None] * side + x[..., 1, None, :])
            weight = part_y[..., 0, :, None] * part_x[..., 1, None, :]
            result += tf.gather(flat, index, batch_dims=1) * weight[..., None]
    return result


def _conv(channels, activation="relu"):
    return layers.Conv2D(channels, 3, padding="same", activation=activation)


class MaskHead(layers.Layer):
    """Mask R-CNN's: a mask for each class, of which the right one counts."""

    def __init__(self, channels):
        super().__init__()
        self._body = keras.Sequential(
            [_conv(channels) for _ in range(4)]
            + [layers.Conv2DTranspose(channels, 2, 2, activation="relu"),
               layers.Conv2D(data.SHAPES, 1)])

    def call(self, features, classes):
        masks = self._body(features)
        chosen = tf.one_hot(tf.maximum(classes - 1, 0), data.SHAPES)
        return [tf.einsum("nyxk,nk->nyx", masks, chosen)]


class ShapeMaskHead(layers.Layer):
    """ShapeMask's: a mixture of known shapes is refined twice, the second time
    by what the thing itself looks like. Gives the coarse and the fine mask."""

    def __init__(self, channels):
        super().__init__()
        self._weigh = layers.Dense(data.SHAPES)
        self._prior = layers.Conv2D(channels, 1)
        self._coarse = keras.Sequential([_conv(channels) for _ in range(4)]
                                        + [layers.Conv2D(1, 1)])
        self._look = layers.Dense(channels)
        self._fine = keras.Sequential(
            [_conv(channels) for _ in range(4)]
            + [layers.Conv2DTranspose(channels, 2, 2, activation="relu"),
               layers.Conv2D(1, 1)])

    def call(self, features, classes):
        size = features.shape[1]
        shapes = tf.image.resize(data.shape_masks()[..., None], [size, size])
        weights = tf.nn.softmax(self._weigh(tf.reduce_mean(features, [1, 2])))
        prior = tf.einsum("nk,kyx->nyx", weights, shapes[..., 0])[..., None]
        seen = features + self._prior(prior)
        coarse = self._coarse(seen)
        inside = tf.sigmoid(coarse)
        looks = tf.math.divide_no_nan(tf.reduce_sum(seen * inside, [1, 2]),
                                      tf.reduce_sum(inside, [1, 2]))
        fine = self._fine(seen - self._look(looks)[:, None, None])
        coarse = tf.repeat(tf.repeat(coarse, 2, axis=1), 2, axis=2)
        return [coarse[..., 0], fine[..., 0]]


class RegionHeads(layers.Layer):
    """Proposes regions and says of each its class, its box and its mask, beside
    what it should say: proposals count for the box that they overlap most, if
    by half."""

    def __init__(self, side, at, proposals, channels, dense, mask_head):
        super().__init__()
        self._side, self._at, self._count = side, at, proposals
        self._hidden = keras.Sequential(
            [layers.Dense(dense, "relu") for _ in range(2)])
        self._class = layers.Dense(data.SHAPES + 1)
        self._box = layers.Dense(4)
        self._mask = mask_head(channels)

    def call(self, levels, logits, deltas, boxes, classes):
        found = propose(logits, deltas, self._at, self._side, self._count)
        found = tf.concat([found, boxes], axis=1)
        overlap = overlaps(found, boxes)
        best, of_box = tf.reduce_max(overlap, -1), tf.argmax(overlap, -1)
        truth = tf.gather(boxes, of_box, batch_dims=1)
        label = tf.where(best >= 0.5,
                         tf.gather(classes, of_box, batch_dims=1), 0)
        size = self._count + boxes.shape[1]
        features = cut_out(levels, found, 7)
        hidden = self._hidden(tf.reshape(
            features, [-1, size, 7 * 7 * features.shape[-1]]))
        outputs = {"class": label, "class_logits": self._class(hidden),
                   "box": self._box(hidden),
                   "box_told": encode(truth, found)}
        return outputs | self._masks(levels, found, best, label, truth)

    def _masks(self, levels, found, overlap, label, truth):
        _, best = tf.math.top_k(overlap, max(1, found.shape[1] // MASKED))
        found, label, truth = (tf.gather(x, best, batch_dims=1)
                               for x in (found, label, truth))
        count = best.shape[1]
        features = cut_out(levels, found, 14)
        masks = self._mask(
            tf.reshape(features, [-1, 14, 14, features.shape[-1]]),
            tf.reshape(label, [-1]))
        side = data.MASK_SIDE
        return {"mask_of": label > 0,
                "masks": [tf.reshape(mask, [-1, count, side, side])
                          for mask in masks],
                "mask_told": _masks_within(found, label, truth)}


def _masks_within(found, label, truth):
    """The masks of the things, each as seen within the box that was found."""
    masks = tf.constant(data.shape_masks())
    steps = (tf.range(data.MASK_SIDE, dtype=tf.float32) + 0.5) / data.MASK_SIDE
    place = found[..., :2, None] + (found[..., 2:] - found[..., :2])[
        ..., None] * steps
    extent = truth[..., 2:] - truth[..., :2]
    place = (place - truth[..., :2, None]) / extent[..., None]
    inside = tf.cast((place >= 0) & (place < 1), tf.float32)
    index = tf.clip_by_value(tf.cast(place * data.MASK_SIDE, tf.int32), 0,
                             data.MASK_SIDE - 1)
    y, x = index[..., 0, :, None], index[..., 1, None, :]
    kind = tf.maximum(label - 1, 0)[..., None, None]
    kind, y, x = (tf.broadcast_to(part, tf.shape(y + x)) for part in (
        kind, y, x))
    told = tf.gather_nd(masks, tf.stack([kind, y, x], axis=-1))
    return told * inside[..., 0, :, None] * inside[..., 1, None, :]
