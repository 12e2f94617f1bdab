"""Plots data/*.json and data/pools.csv: what a call costs, and what memory is
needed, by allocator and trace."""

import csv
import json
import pathlib
import statistics

import common

HERE = pathlib.Path(__file__).resolve().parent
ALLOCATORS = {"mets": "METS", "bfc": "TensorFlow's BFC", "malloc": "malloc"}
THREADS = [1, 2]


def read(allocator):
    """{(trace, threads): (least nanoseconds of a call, live bytes, held bytes)};
    with several threads a call is one of one thread."""
    with open(HERE / f"data/{allocator}.json", encoding="utf-8") as file:
        runs = json.load(file)["benchmarks"]
    found = {}
    for run in runs:
        if run["run_type"] != "iteration":
            continue
        key = run["run_name"].split("/")[0], run["threads"]
        took = 1e9 * run["threads"] / run["items_per_second"]
        if key not in found or took < found[key][0]:
            found[key] = took, run["live_bytes"], run["held_bytes"]
    return found


def read_pools():
    """{allocator: {trace: smallest pool ÷ what lives at most}}"""
    pools = {"mets": {}, "bfc": {}}
    with open(HERE / "data/pools.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            pools[row["allocator"]][row["trace"]] = int(row["percent"]) / 100
    return pools


def dots(axis, rows, traces):
    """A column of dots for each allocator."""
    for i, (allocator, values) in enumerate(rows.items()):
        place = list(ALLOCATORS).index(allocator)
        axis.plot([values[trace] for trace in traces],
                  [row + 0.2 * (place - 1) for row in range(len(traces))],
                  linestyle="none", label=ALLOCATORS[allocator],
                  color=common.COLOURS[place], marker=common.MARKERS[place])
        common.tell(f"{axis.get_title()} {allocator}",
                    statistics.geometric_mean(values.values()))
        for trace, value in values.items():
            common.tell(f"{axis.get_title()} {allocator} {trace}", value)


def main():
    pyplot = common.use_style()
    found = {allocator: read(allocator) for allocator in ALLOCATORS}
    traces = list(dict.fromkeys(trace for trace, _ in found["mets"]))
    figure, axes = pyplot.subplots(1, 4, sharey=True, figsize=(9, 3.2))
    for axis, threads in zip(axes, THREADS):
        axis.set_title(f"{threads} thread{'s' if threads > 1 else ''}")
        axis.set_xlabel("ns a call")
        axis.set_xscale("log")
        dots(axis, {allocator: {trace: values[trace, threads][0]
                                for trace in traces}
                    for allocator, values in found.items()}, traces)
    axes[2].set_title("held")
    axes[2].set_xlabel("most held ÷ most live")
    dots(axes[2], {allocator: {trace: values[trace, 1][2] / values[trace, 1][1]
                               for trace in traces}
                   for allocator, values in found.items()}, traces)
    axes[3].set_title("needed")
    axes[3].set_xlabel("smallest pool ÷ most live")
    dots(axes[3], read_pools(), traces)
    for axis in axes[2:]:
        axis.set_xlim(left=0.9)
    axes[0].set_yticks(range(len(traces)), traces, fontsize=7)
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(),
                  loc="outside lower center", ncols=3, fontsize=7)
    common.save(figure, HERE, "allocators")


if __name__ == "__main__":
    main()
