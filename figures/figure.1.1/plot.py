"""Plots data/policies.csv: slowdown against the device's part of the peak.

Slowdown is over the least time that any policy could take (least_seconds): that
with all memory, and more where the bus cannot bring back in time what is needed.
"""

import collections
import csv
import pathlib
import statistics

import common

HERE = pathlib.Path(__file__).resolve().parent
TITLES = {"recorded": "as recorded, 12 GB/s",
          "ops100": "ops 100 times as fast, 55 GB/s"}


def rows():
    with open(HERE / "data/policies.csv", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if not row["error"]]


def tell_numbers():
    """Of the times with less memory ÷ those with all of it."""
    slowdowns = collections.defaultdict(list)
    for row in rows():
        slower = float(row["seconds"]) / float(row["ideal_seconds"])
        if row["machine"] == "recorded":
            slowdowns[row["policy"]].append(slower)
        if row["policy"] == "lru" and row["percent"] == "60":
            slowdowns[row["machine"], "60"].append(slower)
            if row["machine"] == "ops100":
                name = row["trace"].removeprefix("mets-")
                common.tell(f"{name} fast", slower)
                common.tell(f"{name} fast bound", float(row["seconds"])
                            / float(row["least_seconds"]))
                common.tell(f"{name} settled", float(row["settled_seconds"])
                            / float(row["ideal_seconds"]))
                common.tell(f"{name} settled bound",
                            float(row["settled_seconds"])
                            / float(row["least_seconds"]))
    common.tell("worst at 60", max(slowdowns["recorded", "60"]))
    means = {policy: statistics.geometric_mean(values)
             for policy, values in slowdowns.items() if isinstance(policy, str)}
    common.tell("lru", means.pop("lru"))
    common.tell("best other", min(means.values()))
    common.tell("worst other", max(means.values()))


def read():
    """{machine: {trace: {policy: [(percent, slowdown)]}}}"""
    curves = collections.defaultdict(
        lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
    for row in rows():
        slowdown = float(row["seconds"]) / float(row["least_seconds"])
        curves[row["machine"]][row["trace"]][row["policy"]].append(
            (int(row["percent"]), slowdown))
    return curves


def main():
    pyplot = common.use_style()
    tell_numbers()
    curves = read()
    traces = sorted({t for of_machine in curves.values() for t in of_machine})
    figure, axes = pyplot.subplots(len(curves), len(traces), squeeze=False,
                                   sharex=True,
                                   figsize=(1.9 * len(traces),
                                            2.2 * len(curves)))
    for axis, trace in zip(axes[0], traces):
        axis.set_title(trace, fontsize=7)
    for line, (machine, of_machine) in zip(axes, curves.items()):
        for axis, trace in zip(line, traces):
            for i, (policy, points) in enumerate(of_machine[trace].items()):
                x, y = zip(*sorted(points))
                axis.plot(x, y, label=policy, linewidth=1,
                          color=common.COLOURS[i % len(common.COLOURS)],
                          marker=common.MARKERS[i % len(common.MARKERS)],
                          linestyle="--" if policy == "belady" else "-")
            axis.set_xticks([40, 60, 80])
        line[0].invert_xaxis()  # All of them: they are shared.
        line[0].set_ylabel(f"time ÷ bound\n{TITLES[machine]}")
    axes[-1][len(traces) // 2].set_xlabel("device memory, % of the peak")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=8,
                  fontsize=7)
    common.save(figure, HERE, "policies")


if __name__ == "__main__":
    main()
