"""Records profiles/NAME.xplane.pb; run it for each, with METS or without:

    METS_DISABLE=1 python record_profiles.py cnn cnn-stock
    metsctl run -- python record_profiles.py cnn cnn-mets
    METS_DISABLE=1 python record_profiles.py gru gru-stock
"""

import pathlib
import shutil
import sys
import tempfile

import numpy as np
import tensorflow as tf

PROFILES = pathlib.Path(__file__).resolve().parent / "profiles"
layers = tf.keras.layers
MODELS = {
    "cnn": ([16, 16, 1], [layers.Conv2D(8, 3, activation="relu"),
                          layers.Flatten()]),
    "gru": ([6, 8], [layers.GRU(8)]),
}


def record(model_name, folder):
    tf.keras.utils.set_random_seed(1)
    shape, body = MODELS[model_name]
    model = tf.keras.Sequential([layers.Input(shape), *body, layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True), jit_compile=False)
    x = np.random.rand(256, *shape).astype(np.float32)
    y = np.random.randint(0, 10, 256)
    model.fit(x, y, batch_size=16, verbose=0, callbacks=[
        tf.keras.callbacks.TensorBoard(folder, profile_batch=(6, 8))])


def main():
    model_name, name = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        record(model_name, folder)
        found, = pathlib.Path(folder).glob("**/*.xplane.pb")
        shutil.copy(found, PROFILES / f"{name}.xplane.pb")


if __name__ == "__main__":
    main()
