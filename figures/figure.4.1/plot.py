"""Plots data/overhead.csv: step times with METS ÷ without, where all fits. Says
what data/small_ops.csv has."""

import collections
import csv
import pathlib
import statistics

import common

HERE = pathlib.Path(__file__).resolve().parent


def read():
    """{model: {"0" or "1" (with METS): [row of each run]}}"""
    models = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(HERE / "data/overhead.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            models[row["model"]][row["mets"]].append(
                {kind: float(row[f"{kind}_seconds"])
                 for kind in ("min", "median")})
    return models


def ratios(runs):
    """With METS ÷ without: of the fastest step of all runs, and of the median
    step of each run."""
    stock, mets = runs["0"], runs["1"]
    return (min(run["min"] for run in mets) / min(run["min"] for run in stock),
            [m["median"] / s["median"] for s, m in zip(stock, mets)])


def tell_small_ops():
    """What a small op takes without METS, and how much longer with it."""
    times = {"0": [], "1": []}
    with open(HERE / "data/small_ops.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            times[row["mets"]].append(float(row["nanoseconds"]))
    more = [m - s for s, m in zip(times["0"], times["1"])]
    common.tell("small op ns", statistics.median(times["0"]))
    common.tell("small op more ns", statistics.median(more))
    common.tell("small op least more ns", min(more))
    common.tell("small op most more ns", max(more))


def main():
    pyplot = common.use_style()
    figure, axis = pyplot.subplots(figsize=(4.4, 2.6))
    models = {model: ratios(runs) for model, runs in read().items()}
    places = range(len(models))
    fastest = [least for least, _ in models.values()]
    middle = [statistics.median(runs) for _, runs in models.values()]
    spread = [[m - min(runs) for m, (_, runs) in zip(middle, models.values())],
              [max(runs) - m for m, (_, runs) in zip(middle, models.values())]]
    axis.plot([place - 0.1 for place in places], fastest, linestyle="none",
              label="fastest step of all runs")
    axis.errorbar([place + 0.1 for place in places], middle, spread,
                  linestyle="none", capsize=2, marker=common.MARKERS[1],
                  color=common.COLOURS[1],
                  label="median step (min–median–max of runs)")
    for model, least, median in zip(models, fastest, middle):
        common.tell(f"{model} fastest", least)
        common.tell(f"{model} median", median)
    common.tell("fastest", statistics.geometric_mean(fastest))
    common.tell("median", statistics.geometric_mean(middle))
    common.tell("most median", max(max(runs) for _, runs in models.values()))
    common.tell("least median", min(min(runs) for _, runs in models.values()))
    tell_small_ops()
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_xticks(places, list(models))
    axis.set_ylabel("step with METS ÷ without")
    axis.set_ylim(0.5, 1.5)
    axis.legend(fontsize=7)
    common.save(figure, HERE, "overhead")


if __name__ == "__main__":
    main()
