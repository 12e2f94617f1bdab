"""Plots data/*.csv: the time of each operator on the CPU, without METS, with
oneDNN and a thread a core, ÷ that of each other way."""

import collections
import csv
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent
WAYS = {"mets": "with METS", "one_thread": "one thread",
        "no_onednn": "without oneDNN"}
TOP = 8  # Operators of each model: those that take longest.


def read(way):
    """{model: [row]} of operators that both runs have, what takes longest
    first."""
    operators = collections.defaultdict(list)
    with open(HERE / f"data/{way}.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["ratio"]:
                operators[row["model"]].append(row)
    return operators


def total(rows):
    """Of all operators, had both runs as many of each."""
    return (sum(float(row["base_total_us"]) for row in rows)
            / sum(int(row["base_count"]) * float(row["other_mean_us"])
                  for row in rows))


def plot(axis, model, ways):
    names = {row["operator"]: float(row["base_share"])
             for row in ways["mets"][model][:TOP]}
    for i, (way, label) in enumerate(WAYS.items()):
        rows = ways[way][model]
        common.tell(f"{model} {way}", total(rows))
        ratio = {row["operator"]: float(row["ratio"]) for row in rows}
        points = [(ratio[name], place + 0.2 * (i - 1))
                  for place, name in enumerate(names) if name in ratio]
        axis.plot(*zip(*points), linestyle="none", label=label,
                  color=common.COLOURS[i], marker=common.MARKERS[i])
        for name in names:
            if name in ratio:
                common.tell(f"{model} {way} {name}", ratio[name])
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_yticks(range(len(names)),
                    [f"{name} ({100 * share:.0f} %)"
                     for name, share in names.items()], fontsize=6)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.tick_params("x", labelsize=8)
    axis.set_title(f"{model} (share of its time)", fontsize=8)


def main():
    pyplot = common.use_style()
    ways = {way: read(way) for way in WAYS}
    models = list(ways["mets"])
    figure, axes = pyplot.subplots(1, len(models), sharex=True,
                                   figsize=(2.7 * len(models), 3))
    for axis, model in zip(axes, models):
        plot(axis, model, ways)
    axes[0].set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    axes[0].minorticks_off()
    axes[len(axes) // 2].set_xlabel(
        "speed-up: mean time of stock ÷ mean time that way")
    figure.legend(*axes[0].get_legend_handles_labels(),
                  loc="outside lower center", ncols=3, fontsize=7)
    common.save(figure, HERE, "operators")


if __name__ == "__main__":
    main()
