"""Trains models of the zoo with and without METS where everything fits; writes
data/overhead.csv.

    measure.py BUILD

Runs alternate; which comes first alternates too.
"""

import itertools
import os
import pathlib
import sys

import common
import live

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["resnet50", "bert", "ncf", "mnist_cnn"]
RUNS, WARM_UP, STEPS = 3, 3, 12
FIELDS = ["model", "batch", "run", "mets", "min_seconds", "median_seconds",
          "max_seconds", "steps", "load_average"]


def train(build, model, mets):
    words = ["--steps", WARM_UP + STEPS, "--warm-up", WARM_UP]
    if not mets:
        return live.stock(build, model, *words).result()
    with live.Metsd(build, "2GiB") as metsd:
        return metsd.train(model, model, *words).result()


def measure(build):
    """The rows of the CSV."""
    outcomes = {}
    for run, model in itertools.product(range(RUNS), MODELS):
        for mets in ((False, True) if run % 2 else (True, False)):
            result = train(build, model, mets)
            if outcomes.setdefault(model, live.outcome(result)) \
                    != live.outcome(result):
                sys.exit(f"{model}: METS changed the result")
            yield {"model": model, "batch": result["batch"], "run": run,
                   "mets": int(mets), "steps": STEPS,
                   "load_average": round(os.getloadavg()[0], 1),
                   **{f"{kind}_seconds": value for kind, value in
                      result["steady_seconds"].items()}}


def main():
    build = sys.argv[1]
    common.write_rows(HERE / "data/overhead.csv", FIELDS, measure(build))
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure",
                      models={model: live.MODELS[model] for model in MODELS},
                      versions=live.versions(build))


if __name__ == "__main__":
    main()
