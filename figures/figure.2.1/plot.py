"""Plots data/memory.csv: what is held, what moves, and how long steps take at 100
to 40 % of the peak."""

import collections
import csv
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent


def read():
    """{model: {percent: row}}, all numbers as floats."""
    models = collections.defaultdict(dict)
    with open(HERE / "data/memory.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            numbers = {key: float(value) for key, value in row.items()
                       if value and key not in ("model", "percent")}
            models[row["model"]][row["percent"]] = numbers
    return models


def plot_steps(axis, model, rows, style):
    """Median steps, and the fastest and slowest, ÷ the median without METS."""
    least, middle, most = (
        [row[f"{kind}_seconds"] / row["stock_seconds"] for row in rows.values()]
        for kind in ("min", "median", "max"))
    axis.errorbar(
        [int(key) for key in rows], middle,
        [[m - low for m, low in zip(middle, least)],
         [high - m for m, high in zip(middle, most)]], capsize=2, **style)
    for key, value in zip(rows, middle):
        common.tell(f"{model} at {key} step", value)


def main():
    pyplot = common.use_style()
    figure, (memory, moves, steps) = pyplot.subplots(1, 3, figsize=(9, 2.9))
    for i, (model, rows) in enumerate(read().items()):
        peak = rows["100"]["peak_resident_bytes"]
        percent = [int(key) for key in rows]
        held = [100 * row["peak_resident_bytes"] / peak
                for row in rows.values()]
        style = {"color": common.COLOURS[i], "marker": common.MARKERS[i]}
        memory.plot(percent, held, label=f"{model} ({peak / 2**20:.0f} MiB)",
                    **style)
        moved = [row["moved_bytes"] / 2**20 for row in rows.values()]
        moves.plot(percent, moved, **style)
        plot_steps(steps, model, rows, style)
        for key, mib, part in zip(rows, moved, held):
            common.tell(f"{model} at {key} moved MiB", mib)
            common.tell(f"{model} at {key} held", part)
    for axis in (memory, moves, steps):
        axis.set_xlabel("memory (% of the peak)")
        axis.invert_xaxis()
        axis.set_ylim(bottom=0)
    moves.set_ylabel("moved a step (MiB)")
    memory.set_ylabel("most that was held (% of the peak)")
    steps.set_ylabel("step ÷ median without METS\n(min–median–max)")
    figure.legend(loc="outside lower center", ncols=3, fontsize=7)
    common.save(figure, HERE, "memory")


if __name__ == "__main__":
    main()
