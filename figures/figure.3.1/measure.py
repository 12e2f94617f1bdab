"""Trains two and three models of the zoo at once; writes data/sharing.csv.

    measure.py BUILD

All have warmed up before the clock starts. The ways:
  serial    one after the other, without METS; the sum of their seconds
  roomy     at once without METS, in as much memory as they like
  shared    at once with METS, on a device with PERCENT of the sum of their
            peaks
  split     the same, but each may have only its part of the device, as with a
            fixed partition: no memory passes from one to the other
  naive     at once without METS: TensorFlow's allocator for GPUs has each one's
            part of the device. Where one fails there are no seconds
serial and roomy are phases of the same processes, and each way's runs are.
Losses and weights must be those without METS, to the bit.
"""

import pathlib
import sys

import common
import live

HERE = pathlib.Path(__file__).resolve().parent
SETS = [("bert", "bert"), ("bert", "ncf"), ("ncf", "bert", "mnist_cnn")]
PERCENT = 60
RUNS, WARM_UP, STEPS = 2, 4, 12
FIELDS = ["jobs", "run", "way", "seconds", "pool_bytes", "moved_bytes"]
ALONE = live.Phases(WARM_UP, STEPS, 2 * RUNS)  # Serial and roomy, in turns.
TOGETHER = live.Phases(WARM_UP, STEPS, RUNS)


def peaks(build, models):
    """The most that METS holds for each."""
    with live.Metsd(build, "1GiB") as metsd:
        trainings = {model: metsd.train(model, model, "--steps", 3)
                     for model in models}
        return {model: training.result()["peak_bytes"]
                for model, training in trainings.items()}


def without_mets(build, models):
    """The seconds of each run one after the other, those at once, and the
    results."""
    trainings = [live.stock(build, model, *ALONE.options) for model in models]
    serial, roomy = [], []
    with live.standing(*trainings):
        for run in range(RUNS):
            serial.append(sum(ALONE.run(2 * run, training)
                              for training in trainings))
            roomy.append(ALONE.run(2 * run + 1, *trainings))
        return serial, roomy, [training.result() for training in trainings]


def together(trainings, failure):
    """The seconds of each run at once, and the results; none where one fails."""
    try:
        with live.standing(*trainings):
            return ([TOGETHER.run(run, *trainings) for run in range(RUNS)],
                    [training.result() for training in trainings])
    except failure:
        return [""], []


def with_mets(build, models, parts, split):
    # Some of TensorFlow's ops crash where their memory does not suffice.
    failure = live.Failed if split else live.OutOfMemory
    with live.Metsd(build, sum(parts)) as metsd:
        return together([
            metsd.train(model, f"{model}-{i}", *TOGETHER.options,
                        options=["--limit", part, *live.SHORT_WAIT] if split
                        else [])
            for i, (model, part) in enumerate(zip(models, parts))], failure)


def naive(build, models, parts):
    return together([
        live.stock(build, model, *TOGETHER.options, "--memory", part)
        for model, part in zip(models, parts)], live.Failed)


def measure_set(build, models, parts):
    """The rows of the CSV, without what they have in common."""
    serial, roomy, alone = without_mets(build, models)
    for run in range(RUNS):
        yield {"way": "serial", "run": run, "seconds": serial[run]}
        yield {"way": "roomy", "run": run, "seconds": roomy[run]}
    for way, (seconds, results) in {
            "shared": with_mets(build, models, parts, split=False),
            "split": with_mets(build, models, parts, split=True),
            "naive": naive(build, models, parts)}.items():
        for stock, result in zip(alone, results):
            if live.outcome(result) != live.outcome(stock, result["steps"]):
                sys.exit(f"{models}: {way} changed the result of "
                         f"{result['model']}")
        for run, took in enumerate(seconds):
            row = {"way": way, "run": run, "seconds": took,
                   "pool_bytes": sum(parts)}
            if results and way != "naive":
                row["moved_bytes"] = sum(TOGETHER.moved_bytes(result, run)
                                         for result in results)
            yield row


def measure(build):
    """The rows of the CSV."""
    parts = {model: peak * PERCENT // 100 >> 16 << 16 for model, peak in
             peaks(build, dict.fromkeys(sum(SETS, ()))).items()}
    for models in SETS:
        for row in measure_set(build, models,
                               [parts[model] for model in models]):
            yield {"jobs": "+".join(models), **row}


def main():
    build = sys.argv[1]
    common.write_rows(HERE / "data/sharing.csv", FIELDS, measure(build))
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure",
                      models={model: live.MODELS[model]
                              for model in sum(SETS, ())},
                      steps=STEPS, percent=PERCENT,
                      versions=live.versions(build))


if __name__ == "__main__":
    main()
