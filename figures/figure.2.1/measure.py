"""Trains models of the zoo in less and less memory; writes data/memory.csv.

    measure.py BUILD

Each trains with METS on a device where it fits, and without; at steps STEPS,
2 × STEPS … its limit is lowered. Before that the training without METS takes as
many steps, so that how fast the machine is just then meets both. The first steps
at each limit, in which METS gets to know it, are not in the times. The program is
told nothing, and losses and weights must be those without METS, to the bit.
"""

import pathlib
import statistics
import sys
import threading

import common
import live

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["ncf", "bert", "transformer"]
PERCENT = [100, 80, 60, 40]  # Of the peak.
STEPS, SKIP = 9, 4           # At each limit.
FIELDS = ["model", "percent", "limit_bytes", "peak_resident_bytes",
          "min_seconds", "median_seconds", "max_seconds", "stock_seconds",
          "moved_bytes", "batch"]


def times(result, phase):
    """The seconds of the steps at one limit."""
    seconds = result["step_seconds"][phase * STEPS + SKIP:(phase + 1) * STEPS]
    return {"min_seconds": min(seconds), "max_seconds": max(seconds),
            "median_seconds": statistics.median(seconds),
            "batch": result["batch"]}


def watch(metsd, training, last):
    """What the job holds at most until the step `last` has ended, looked at ten
    times a second; and what it has moved in that time."""
    ended = threading.Event()
    held = []

    def look():
        while not ended.wait(0.1):
            held.append(metsd.job("watched"))

    held.append(metsd.job("watched"))
    thread = threading.Thread(target=look)
    thread.start()
    training.wait_until(f"step {last}/")
    held.append(metsd.job("watched"))
    ended.set()
    thread.join()
    moved = [job["evicted_bytes_total"] + job["restored_bytes_total"]
             for job in held]
    return max(job["resident_bytes"] for job in held), max(moved) - moved[0]


def go_on(training):
    """Until it waits again, or has ended."""
    training.begin()
    training.stand_still()


def lower(metsd, training, stock):
    """What the job holds and moves at each limit; after each, the training
    without METS takes its steps."""
    go_on(training)
    go_on(stock)
    peak = metsd.job("watched")["peak_live_bytes"]
    rows = [{"percent": 100, "peak_resident_bytes": peak, "moved_bytes": 0}]
    for phase, percent in enumerate(PERCENT[1:], 1):
        limit = peak * percent // 100
        metsd.control("limit", "watched", limit)
        training.begin()
        training.wait_until(f"step {phase * STEPS + SKIP}/")
        most, moved = watch(metsd, training, (phase + 1) * STEPS)
        rows.append({"percent": percent, "limit_bytes": limit,
                     "peak_resident_bytes": most,
                     "moved_bytes": moved // (STEPS - SKIP)})
        training.stand_still()
        go_on(stock)
    return rows


def measure(build, model):
    """The rows of the CSV."""
    words = ["--steps", STEPS * len(PERCENT), "--meet", SKIP + 1]
    for phase in range(1, len(PERCENT)):
        words += ["--meet", phase * STEPS + 1]
    stock = live.stock(build, model, *words)
    with live.Metsd(build, "2GiB") as metsd:
        training = metsd.train(model, "watched", *words)
        with live.standing(stock, training):
            rows = lower(metsd, training, stock)
            result, alone = training.result(), stock.result()
    if live.outcome(result) != live.outcome(alone):
        sys.exit(f"{model}: METS changed the result")
    for phase, row in enumerate(rows):
        yield {"model": model, **row, **times(result, phase),
               "stock_seconds": times(alone, phase)["median_seconds"]}


def main():
    build = sys.argv[1]
    common.write_rows(HERE / "data/memory.csv", FIELDS, (
        row for model in MODELS for row in measure(build, model)))
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure",
                      models={model: live.MODELS[model]
                              for model in MODELS},
                      versions=live.versions(build))


if __name__ == "__main__":
    main()
