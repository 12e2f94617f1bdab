"""Trains two and three models of the zoo at once; writes data/sharing.csv.

    measure.py BUILD

All have warmed up before the clock starts. The ways:
  serial    one after the other, without METS; the sum of the steps' times
  shared    at once with METS, on a device with PERCENT of the sum of their
            peaks
  split     the same, but each may have only its part of the device, as with a
            fixed partition: no memory passes from one to the other
  roomy     at once without METS, in as much memory as they like
  naive     at once without METS: TensorFlow's allocator for GPUs has each one's
            part of the device. Where one fails there are no seconds
Losses and weights must be those without METS, to the bit.
"""

import pathlib
import sys
import time

import common
import live

HERE = pathlib.Path(__file__).resolve().parent
SETS = [("bert", "bert"), ("bert", "ncf"), ("ncf", "bert", "mnist_cnn")]
PERCENT = 60
RUNS, WARM_UP, STEPS = 2, 4, 16
METS_WAYS = ("shared", "split")
FIELDS = ["jobs", "run", "way", "seconds", "pool_bytes", "moved_bytes"]
WORDS = ["--warm-up", WARM_UP, "--steps", WARM_UP + STEPS]


def alone(build, model):
    """Without METS."""
    result = live.stock(build, model, *WORDS).result()
    return sum(result["step_seconds"][WARM_UP:]), live.outcome(result)


def peak(build, model):
    """The most that METS holds for it."""
    with live.Metsd(build, "2GiB") as metsd:
        return metsd.train(model, "peak", "--steps", 3).result()["peak_bytes"]


def run(trainings):
    """Lets them all begin once all are ready; gives the seconds until all have
    done their steps, and their results."""
    try:
        for training in trainings:
            training.wait_until("ready")
        begin = time.monotonic()
        for training in trainings:
            training.begin()
        for training in trainings:
            training.wait_until(f"step {WARM_UP + STEPS}/")
        seconds = time.monotonic() - begin
        return seconds, [training.result() for training in trainings]
    finally:
        for training in trainings:
            training.process.kill()


def with_mets(build, models, parts, split):
    names = [f"{model}-{i}" for i, model in enumerate(models)]
    with live.Metsd(build, sum(parts)) as metsd:
        return run([
            metsd.train(model, name, "--meet", *WORDS,
                        options=["--limit", part] if split else [])
            for model, name, part in zip(models, names, parts)])


def stock(build, models, parts):
    return run([live.stock(build, model, "--meet", *WORDS,
                           *(["--memory", part] if part else []))
                for model, part in zip(models, parts)])


def together(build, models, parts, outcomes, way):
    """The row of the CSV."""
    row = {"pool_bytes": "" if way == "roomy" else sum(parts)}
    try:
        if way in METS_WAYS:
            seconds, results = with_mets(build, models, parts, way == "split")
        else:
            seconds, results = stock(
                build, models, parts if way == "naive" else [0] * len(parts))
    except live.Failed as failed:
        print(str(failed).strip().splitlines()[-1])
        return row
    for model, result in zip(models, results):
        if live.outcome(result) != outcomes[model]:
            sys.exit(f"{models}: {way} changed the result of {model}")
    if way in METS_WAYS:
        row["moved_bytes"] = sum(
            result["mets"][f"{moved}_bytes_total"]
            for result in results for moved in ("evicted", "restored"))
    return row | {"seconds": seconds}


def measure(build):
    """The rows of the CSV."""
    zoo = dict.fromkeys(sum(SETS, ()))
    parts = {model: peak(build, model) * PERCENT // 100 >> 16 << 16
             for model in zoo}
    for run in range(RUNS):
        seconds, outcomes = {}, {}
        for model in zoo:
            seconds[model], outcomes[model] = alone(build, model)
        for models in SETS:
            row = {"jobs": "+".join(models), "run": run}
            yield row | {"way": "serial", "seconds": sum(
                seconds[model] for model in models)}
            for way in (*METS_WAYS, "roomy", *(["naive"] if run == 0 else [])):
                yield row | {"way": way} | together(
                    build, models, [parts[model] for model in models], outcomes,
                    way)


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
