"""Plots data/moved.csv: bytes moved live and simulated."""

import collections
import csv
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ["live", "simulated"]
GIB = 1 << 30


def read():
    """{(pair, plans): {run: {kind: bytes moved}}}"""
    moved = collections.defaultdict(
        lambda: collections.defaultdict(collections.Counter))
    with open(HERE / "data/moved.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for kind in KINDS:
                moved[row["pair"], row["plans"]][row["run"]][kind] += sum(
                    int(row[f"{kind}_{way}_bytes"])
                    for way in ("evicted", "restored"))
    return moved


def main():
    pyplot = common.use_style()
    moved = read()
    figure, axis = pyplot.subplots(figsize=(4.4, 2.6))
    for k, kind in enumerate(KINDS):
        points = [(place + 0.24 * (k - 0.5), run[kind] / GIB)
                  for place, runs in enumerate(moved.values())
                  for run in runs.values()]
        axis.plot(*zip(*points), linestyle="none", label=kind,
                  color=common.COLOURS[k], marker=common.MARKERS[k])
    axis.set_xticks(range(len(moved)),
                    [f"{pair}\nplans {plans}" for pair, plans in moved],
                    fontsize=7)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("moved out and in (GiB)")
    axis.legend()
    for (pair, plans), runs in moved.items():
        ratio = (sum(run["simulated"] for run in runs.values())
                 / sum(run["live"] for run in runs.values()))
        common.tell(f"{pair} {plans}", ratio)
    common.save(figure, HERE, "moved")


if __name__ == "__main__":
    main()
