"""Plots data/decisions.csv: time of a decision against buffers, each
decision's best."""

import collections
import csv
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent
TITLES = {"lru": "lru", "next_use": "next_use",
          "lru_idle": "lru, program not in cache either"}
BOUND_US = 50


def read():
    """{case: {sessions: {buffers: (p50, p99)}}}"""
    curves = collections.defaultdict(lambda: collections.defaultdict(dict))
    with open(HERE / "data/decisions.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["run"] == "best":
                curves[row["case"]][int(row["sessions"])][
                    int(row["buffers"])] = (float(row["p50_us"]),
                                            float(row["p99_us"]))
    return curves


def main():
    pyplot = common.use_style()
    curves = read()
    one, many = curves["lru"][1], curves["lru"][64]
    for i, name in enumerate(("p50", "p99")):
        common.tell(name, max(curves[case][64][10_000][i]
                              for case in ("lru", "next_use")))
        common.tell(f"{name} grows", many[10_000][i] / one[100][i])
        common.tell(f"{name} grows with 64", many[10_000][i] / many[100][i])
    figure, axes = pyplot.subplots(1, len(TITLES), sharey=True, squeeze=False,
                                   figsize=(2.8 * len(TITLES), 3.0))
    for axis, (case, title) in zip(axes[0], TITLES.items()):
        for i, (sessions, curve) in enumerate(sorted(curves[case].items())):
            buffers = sorted(curve)
            p50, p99 = zip(*(curve[b] for b in buffers))
            style = {"color": common.COLOURS[i], "marker": common.MARKERS[i]}
            axis.plot(buffers, p99, linestyle="-", label=str(sessions), **style)
            axis.plot(buffers, p50, linestyle=":", **style)
        axis.axhline(BOUND_US, color="grey", linewidth=0.8, linestyle="--",
                     marker="")
        axis.set_xscale("log")
        axis.set_xlabel("buffers of each session")
        axis.set_title(title, fontsize=8)
    axes[0][0].set_ylim(bottom=0)  # All of them: they are shared.
    axes[0][0].set_ylabel("time of one decision (µs)\nsolid: p99, dotted: p50")
    axes[0][0].legend(title="sessions", loc="best", fontsize=7)
    common.save(figure, HERE, "decision_cost")


if __name__ == "__main__":
    main()
