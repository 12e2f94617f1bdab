"""One of the Keras trainings of tests/e2e/models.py, for measure.py.

    python train.py MODEL STEPS

says "ready" and what it has moved so far when its first step is about to begin,
waits for a line, trains STEPS steps, and says "done" with the same numbers.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]
                       / "tests" / "e2e"))
import models

tf = models.tf


def say(word):
    stats = models.mets_stats.read()
    print(word, json.dumps(stats), flush=True)


class Pause(tf.keras.callbacks.Callback):
    def __init__(self, steps):
        super().__init__()
        self._steps = steps

    def on_train_batch_begin(self, batch, logs=None):
        if batch == 0:
            say("ready")
            sys.stdin.readline()

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == self._steps:
            say("done")
            sys.exit()


def main():
    name, steps = sys.argv[1], int(sys.argv[2])
    # As in figures/traces: ops come in the same order in each step.
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.keras.utils.set_random_seed(models.SEED)
    model = models.build(name)
    # One step more, so that no epoch's end is near.
    model.fit(models.batches(name), steps_per_epoch=steps + 1, epochs=1,
              verbose=0, shuffle=False, callbacks=[Pause(steps)])


if __name__ == "__main__":
    main()
