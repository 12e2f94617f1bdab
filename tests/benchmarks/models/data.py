"""What the zoo learns from: scikit-learn's digits, and data made from a seed."""

import importlib.metadata

import numpy as np

# Importing scikit-learn takes longer than some trainings.
DIGITS = importlib.metadata.distribution("scikit-learn").locate_file(
    "sklearn/datasets/data/digits.csv.gz")
SEED = 20
MASK_SIDE = 28  # Masks are sampled within their boxes, as Mask R-CNN does.
SHAPES = 3


def random():
    return np.random.default_rng(SEED)


def digits(rows, side, channels):
    """Pictures (rows, side, side, channels) of handwritten digits, and labels."""
    data = np.loadtxt(DIGITS, delimiter=",")
    images, labels = data[:, :-1].reshape(-1, 8, 8), data[:, -1]
    rows = np.arange(rows) % len(labels)
    places = np.arange(side) * 8 // side
    pictures = images[rows][:, places][:, :, places] / 16
    pictures = np.repeat(pictures[..., np.newaxis], channels, axis=-1)
    return pictures.astype(np.float32), labels[rows].astype(np.int32)


def shape_masks():
    """(SHAPES, MASK_SIDE, MASK_SIDE): a box, an ellipse and a diamond."""
    line = np.linspace(-1, 1, MASK_SIDE)
    y, x = np.meshgrid(line, line, indexing="ij")
    return np.stack([np.ones_like(x), x * x + y * y <= 1,
                     abs(x) + abs(y) <= 1]).astype(np.float32)


def scenes(rows, side, objects):
    """Pictures with `objects` shapes each on noise; where and what they are.

    Gives pictures (rows, side, side, 3), boxes (rows, objects, 4) as top, left,
    bottom, right in pixels, and classes (rows, objects), 1 to SHAPES.
    """
    rng = random()
    pictures = rng.normal(0, 0.1, (rows, side, side, 3)).astype(np.float32)
    shape = (rows, objects)
    sizes = rng.integers(side // 4, side // 2, (*shape, 2))
    corners = rng.integers(0, side - sizes)
    classes = rng.integers(1, SHAPES + 1, shape).astype(np.int32)
    colours = rng.uniform(0.3, 1, (*shape, 3))
    masks = shape_masks()
    for row, thing in np.ndindex(shape):
        (top, left), (height, width) = corners[row, thing], sizes[row, thing]
        mask = masks[classes[row, thing] - 1]
        mask = mask[np.ix_(np.arange(height) * MASK_SIDE // height,
                           np.arange(width) * MASK_SIDE // width)]
        part = pictures[row, top:top + height, left:left + width]
        part[mask > 0] = colours[row, thing]
    boxes = np.concatenate([corners, corners + sizes], axis=-1)
    return pictures, boxes.astype(np.float32), classes


def sentences(rows, length, words, classes):
    """Tokens (rows, length) and labels: a label's word stands in a quarter of
    its sentence's places. Words below `classes` + 2 are in no sentence else;
    0 is for padding, 1 for masks."""
    rng = random()
    tokens = rng.integers(classes + 2, words, (rows, length))
    labels = rng.integers(0, classes, rows)
    marked = rng.random((rows, length)) < 0.25
    tokens = np.where(marked, labels[:, np.newaxis] + 2, tokens)
    return tokens.astype(np.int32), labels.astype(np.int32)


def spans(rows, length, words):
    """Tokens (rows, length), and the first and the last place of the answer,
    which two words of its own enclose."""
    rng = random()
    tokens = rng.integers(4, words, (rows, length))
    first = rng.integers(0, length // 2, rows)
    last = first + rng.integers(1, length // 2, rows)
    tokens[np.arange(rows), first] = 2
    tokens[np.arange(rows), last] = 3
    return (tokens.astype(np.int32), first.astype(np.int32),
            last.astype(np.int32))


def translations(rows, length, words):
    """Sentences, and the same backwards with each word exchanged for another.
    In both, few words are frequent, as in a language."""
    rng = random()
    source = 2 + rng.zipf(1.3, (rows, length)) % (words - 2)
    dictionary = np.concatenate([[0, 1], 2 + rng.permutation(words - 2)])
    return (source.astype(np.int32),
            dictionary[source[:, ::-1]].astype(np.int32))


def stories(rows, articles, length, headline, words):
    """Articles (rows, articles, length) that say the same words in other
    orders, and the headline (rows, headline): the first of those words."""
    rng = random()
    said = 2 + rng.zipf(1.3, (rows, 1, length)) % (words - 2)
    texts = rng.permuted(np.repeat(said, articles, axis=1), axis=-1)
    return texts.astype(np.int32), said[:, 0, :headline].astype(np.int32)


def ratings(rows, users, items):
    """Users, items, and whether this user likes that item: whether the two have
    signs in common."""
    rng = random()
    user, item = rng.integers(0, users, rows), rng.integers(0, items, rows)
    liked = (rng.normal(size=(users, 4))[user]
             * rng.normal(size=(items, 4))[item]).sum(axis=-1) > 0
    return (user.astype(np.int32), item.astype(np.int32),
            liked.astype(np.float32))
