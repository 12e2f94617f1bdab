"""Plots bytes moved live and simulated: by recordings that are played
(data/played.csv) and by Keras trainings (data/moved.csv)."""

import collections
import csv
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ["live", "simulated"]
GIB = 1 << 30


def read_played():
    """{(pair, plans): {start: {kind: bytes moved}}}; not all are played."""
    moved = collections.defaultdict(dict)
    with open(HERE / "data/played.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            moved[row["pair"], row["plans"]][row["start"]] = {
                kind: int(row[f"{kind}_bytes"]) for kind in KINDS
                if row[f"{kind}_bytes"]}
    return moved


def read_trained():
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


def mean(runs, kind):
    each = [run[kind] for run in runs.values() if kind in run]
    return sum(each) / len(each)


def draw(axis, moved):
    """Runs as small points, their means as large ones."""
    for k, kind in enumerate(KINDS):
        style = {"linestyle": "none", "color": common.COLOURS[k],
                 "marker": common.MARKERS[k]}
        places = [place + 0.24 * (k - 0.5) for place in range(len(moved))]
        points = [(place, run[kind] / GIB)
                  for place, runs in zip(places, moved.values())
                  for run in runs.values() if kind in run]
        axis.plot(*zip(*points), alpha=0.4, markersize=2.5, **style)
        axis.plot(places, [mean(runs, kind) / GIB for runs in moved.values()],
                  label=kind, markersize=5.5, **style)
    axis.set_xticks(range(len(moved)),
                    [f"{pair}\n{plans}" for pair, plans in moved], fontsize=6)
    axis.set_ylim(bottom=0)


def main():
    pyplot = common.use_style()
    played, trained = read_played(), read_trained()
    figure, axes = pyplot.subplots(1, 2, figsize=(7.2, 2.6))
    draw(axes[0], played)
    axes[0].set_title("recordings, played", fontsize=9)
    axes[0].set_ylabel("moved out and in (GiB)")
    axes[0].legend()
    draw(axes[1], trained)
    axes[1].set_title("Keras trainings (times fitted)", fontsize=9)
    for axis in axes:
        axis.set_xlabel("pair, plans off or on")
    for name, moved in (("played ", played), ("", trained)):
        for (pair, plans), runs in moved.items():
            common.tell(f"{name}{pair} {plans}",
                        mean(runs, "simulated") / mean(runs, "live"))
    common.tell("played", sum(mean(r, "simulated") for r in played.values())
                / sum(mean(r, "live") for r in played.values()))
    common.save(figure, HERE, "moved")


if __name__ == "__main__":
    main()
