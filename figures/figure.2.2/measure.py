"""Finds the largest batch that trains in a device of fixed size; writes
data/batches.csv.

    measure.py BUILD

Without METS, TensorFlow's allocator for GPUs has that much memory; with METS
it is the device. A batch trains when STEPS steps of it end well. Nothing here is
a time, so the searches run at once.
"""

import concurrent.futures
import itertools
import pathlib
import sys

import common
import live

HERE = pathlib.Path(__file__).resolve().parent
DEVICE = 64 << 20
MODELS = ["bert", "mnist_cnn"]
FIRST = 16
STEPS = 3
FIELDS = ["model", "mets", "batch", "trains", "peak_bytes", "moved_bytes"]


def train(build, model, batch, mets):
    """Its result, or None when it fails."""
    words = ["--batch", batch, "--steps", STEPS, "--warm-up", 1]
    try:
        if not mets:
            return live.stock(build, model, *words, "--memory",
                              DEVICE).result()
        with live.Metsd(build, DEVICE) as metsd:
            return metsd.train(model, model, *words,
                               options=live.SHORT_WAIT).result()
    except live.OutOfMemory:
        return None


def search(build, model, mets):
    """The rows of the CSV: doubles or halves the batch until one trains and
    twice as much does not, then tries one and a half times as much."""
    rows, best, failed, batch = [], 0, None, FIRST
    while batch:
        result = train(build, model, batch, mets)
        row = {"model": model, "mets": int(mets), "batch": batch,
               "trains": int(result is not None)}
        if result is None:
            failed = batch
        else:
            best = batch
            row["peak_bytes"] = result["peak_bytes"]
            row["moved_bytes"] = sum(
                result["mets"][f"{way}_bytes_total"]
                for way in ("evicted", "restored")) if mets else 0
        rows.append(row)
        if failed is None:
            batch = 2 * best
        elif best == 0:
            batch = failed // 2
        elif failed == 2 * best:
            batch = 3 * best // 2
        else:
            break
    return rows


def main():
    build = sys.argv[1]
    live.forks(pathlib.Path(build))  # Before it is used by several threads.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        searches = [pool.submit(search, build, model, mets)
                    for model, mets in itertools.product(MODELS, (False, True))]
        common.write_rows(HERE / "data/batches.csv", FIELDS, (
            row for done in searches for row in done.result()))
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure",
                      models={model: live.MODELS[model] for model in MODELS},
                      device_bytes=DEVICE, versions=live.versions(build))


if __name__ == "__main__":
    main()
