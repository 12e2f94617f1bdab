"""Plots data/*.csv. Above: the time of each operator on the CPU, without METS,
with oneDNN and a thread a core, ÷ that of each other way. Below, of another
machine: on its CPU ÷ on its GPU, and on its GPU without METS ÷ with METS."""

import collections
import csv
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent
WAYS = {"mets": "with METS", "one_thread": "one thread",
        "no_onednn": "without oneDNN"}
# Of the machine with a GPU, if it is measured.
GPU_WAYS = {"gpu_mets": "GPU, with METS", "gpu": "GPU, over its machine's CPU"}
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


def plot(axis, model, ways, labels, device):
    """The operators that take longest in the first way's base."""
    names = {row["operator"]: float(row["base_share"])
             for row in next(iter(ways.values()))[model][:TOP]}
    for i, (way, operators) in enumerate(ways.items()):
        if model not in operators:
            continue
        rows = operators[model]
        common.tell(f"{model} {way}", total(rows))
        ratio = {row["operator"]: float(row["ratio"]) for row in rows}
        points = [(ratio[name], place + 0.2 * (i - 1))
                  for place, name in enumerate(names) if name in ratio]
        axis.plot(*zip(*points), linestyle="none", label=labels[way],
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
    axis.set_title(f"{model}, {device} (share of time)", fontsize=8)
    axis.set_xlabel("speed-up of the mean time", fontsize=8)


def plot_all(part, ways, labels, device, ticks):
    """Each model on an axis of its own."""
    models = list(next(iter(ways.values())))
    axes = part.subplots(1, len(models), sharex=True, squeeze=False)[0]
    for axis, model in zip(axes, models):
        plot(axis, model, ways, labels, device)
    axes[0].set_xticks(ticks, map(str, ticks))
    axes[0].minorticks_off()
    part.legend(*axes[0].get_legend_handles_labels(),
                loc="outside lower center", ncols=3, fontsize=7)


def main():
    pyplot = common.use_style()
    groups = [(WAYS, "CPU", [0.5, 1, 2, 4, 8])]
    if all((HERE / f"data/{way}.csv").exists() for way in GPU_WAYS):
        groups.append((GPU_WAYS, "GPU", [1, 10, 100]))
    figure = pyplot.figure(figsize=(8.1, 3 * len(groups)))
    parts = figure.subfigures(len(groups), 1, squeeze=False)[:, 0]
    for part, (labels, device, ticks) in zip(parts, groups):
        plot_all(part, {way: read(way) for way in labels}, labels, device,
                 ticks)
    common.save(figure, HERE, "operators")


if __name__ == "__main__":
    main()
