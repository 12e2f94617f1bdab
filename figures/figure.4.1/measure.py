"""Trains models of the zoo with and without METS where everything fits; writes
data/overhead.csv.

    measure.py BUILD

One training with METS and one without wait for each other, and take turns of
STEPS steps, twice; which comes first alternates. All that is done twice.
"""

import itertools
import os
import pathlib
import statistics
import sys

import common
import live

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["resnet50", "bert", "ncf", "mnist_cnn"]
RUNS, TURNS, STEPS = 2, 2, 10
PHASES = live.Phases(3, STEPS, TURNS)
FIELDS = ["model", "batch", "run", "mets", "min_seconds", "median_seconds",
          "max_seconds", "steps", "load_average"]


def train(build, model):
    """The results without METS and with it."""
    with live.Metsd(build, "2GiB") as metsd:
        trainings = [live.stock(build, model, *PHASES.options),
                     metsd.train(model, model, *PHASES.options)]
        with live.standing(*trainings):
            for turn in range(TURNS):
                for training in trainings[::-1 if turn % 2 else 1]:
                    PHASES.run(turn, training)
            return [training.result() for training in trainings]


def measure(build):
    """The rows of the CSV."""
    for run, model in itertools.product(range(RUNS), MODELS):
        results = train(build, model)
        if live.outcome(results[0]) != live.outcome(results[1]):
            sys.exit(f"{model}: METS changed the result")
        for turn, mets in itertools.product(range(TURNS), (0, 1)):
            seconds = PHASES.step_seconds(results[mets], turn)
            yield {"model": model, "batch": results[mets]["batch"],
                   "run": run * TURNS + turn, "mets": mets, "steps": STEPS,
                   "min_seconds": min(seconds), "max_seconds": max(seconds),
                   "median_seconds": statistics.median(seconds),
                   "load_average": round(os.getloadavg()[0], 1)}


def main():
    build = sys.argv[1]
    common.write_rows(HERE / "data/overhead.csv", FIELDS, measure(build))
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure",
                      models={model: live.MODELS[model] for model in MODELS},
                      versions=live.versions(build))


if __name__ == "__main__":
    main()
