"""Models that classify pictures."""

import math

import data
from keras import Model, layers
from task import Task, classification


def _task(inputs, features, classes, rows, side, channels):
    logits = layers.Dense(classes)(features)
    pictures, labels = data.digits(rows, side, channels)
    return Task(Model({"picture": inputs}, logits), {"picture": pictures},
                {"label": labels}, classification)


def mnist_cnn(rows, side=28, width=32):
    """Two convolutions and two dense layers, as in Keras' MNIST example."""
    inputs = layers.Input([side, side, 1], name="picture")
    x = layers.Conv2D(width, 3, activation="relu")(inputs)
    x = layers.Conv2D(2 * width, 3, activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Dropout(0.25)(x)
    x = layers.Dense(4 * width, activation="relu")(layers.Flatten()(x))
    x = layers.Dropout(0.5)(x)
    return _task(inputs, x, 10, rows, side, 1)


def conv(x, channels, size=3, stride=1, activation="relu", depthwise=False):
    """A convolution without bias, normalised over the batch."""
    if depthwise:
        x = layers.DepthwiseConv2D(size, stride, padding="same",
                                   use_bias=False)(x)
    else:
        x = layers.Conv2D(channels, size, stride, padding="same",
                          use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.Activation(activation)(x) if activation else x


def resnet(inputs, width, depths):
    """What the stages of a ResNet of bottleneck blocks give, finest first (He
    et al. 2016; the stride is in the 3 x 3 convolution)."""
    x = layers.MaxPooling2D(3, 2, padding="same")(conv(inputs, width, 7, 2))
    stages = []
    for stage, depth in enumerate(depths):
        channels = width << stage
        for block in range(depth):
            stride = 2 if stage > 0 and block == 0 else 1
            y = conv(conv(x, channels, 1), channels, 3, stride)
            y = conv(y, 4 * channels, 1, activation=None)
            if block == 0:
                x = conv(x, 4 * channels, 1, stride, activation=None)
            x = layers.ReLU()(layers.Add()([x, y]))
        stages.append(x)
    return stages


def resnet50(rows, side=224, width=64, depths=(3, 4, 6, 3), classes=1000):
    inputs = layers.Input([side, side, 3], name="picture")
    x = layers.GlobalAveragePooling2D()(resnet(inputs, width, depths)[-1])
    return _task(inputs, x, classes, rows, side, 3)


# Expansion, channels, blocks, stride, kernel (Tan and Le 2019, table 1).
EFFICIENTNET_STAGES = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5),
                       (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
                       (6, 320, 1, 1, 3)]


def _mobile_block(x, expansion, channels, stride, kernel, drop):
    """An inverted bottleneck with squeeze and excitation; `drop` is the part of
    the rows in which it is left out."""
    entered = x.shape[-1]
    y = conv(x, expansion * entered, 1, activation="swish") \
        if expansion > 1 else x
    y = conv(y, None, kernel, stride, "swish", depthwise=True)
    squeezed = layers.GlobalAveragePooling2D(keepdims=True)(y)
    squeezed = layers.Conv2D(max(1, entered // 4), 1,
                             activation="swish")(squeezed)
    y = layers.Multiply()([y, layers.Conv2D(y.shape[-1], 1,
                                            activation="sigmoid")(squeezed)])
    y = conv(y, channels, 1, activation=None)
    if stride > 1 or entered != channels:
        return y
    if drop:
        y = layers.Dropout(drop, noise_shape=(None, 1, 1, 1))(y)
    return layers.Add()([x, y])


def efficientnet_b0(rows, side=224, width=1.0, depth=1.0, classes=1000):
    """`width` scales channels, to multiples of 8, `depth` the blocks."""
    def scaled(channels):
        return max(8, round(channels * width / 8) * 8)

    inputs = layers.Input([side, side, 3], name="picture")
    x = conv(inputs, scaled(32), 3, 2, "swish")
    stages = [(*stage[:2], math.ceil(stage[2] * depth), *stage[3:])
              for stage in EFFICIENTNET_STAGES]
    blocks, done = sum(stage[2] for stage in stages), 0
    for expansion, channels, count, stride, kernel in stages:
        for block in range(count):
            x = _mobile_block(x, expansion, scaled(channels),
                              1 if block else stride, kernel,
                              0.2 * done / blocks)
            done += 1
    x = conv(x, scaled(1280), 1, activation="swish")
    x = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(x))
    return _task(inputs, x, classes, rows, side, 3)
