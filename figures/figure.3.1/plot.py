"""Plots data/sharing.csv: time of jobs at once ÷ one after the other."""

import collections
import csv
import pathlib
import statistics

import common

HERE = pathlib.Path(__file__).resolve().parent
WAYS = {"shared": "METS, one device for all",
        "split": "METS, a fixed part for each",
        "roomy": "no METS, memory for all"}


def read():
    """{jobs: {way: [row of each run]}}, without those that failed."""
    sets = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(HERE / "data/sharing.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["seconds"]:
                sets[row["jobs"]][row["way"]].append(row)
    return sets


def seconds(rows):
    return [float(row["seconds"]) for row in rows]


def plot(axis, place, jobs, ways):
    serial = statistics.median(seconds(ways["serial"]))
    for i, way in enumerate(WAYS):
        if way not in ways:
            continue
        values = [value / serial for value in seconds(ways[way])]
        middle = statistics.median(values)
        axis.errorbar(place + 0.2 * (i - 1), middle,
                      [[middle - min(values)], [max(values) - middle]],
                      linestyle="none", capsize=2, color=common.COLOURS[i],
                      marker=common.MARKERS[i])
        common.tell(f"{jobs} {way}", middle)
        moved = [int(row["moved_bytes"]) for row in ways[way]
                 if row["moved_bytes"]]
        if moved:
            common.tell(f"{jobs} {way} moved MiB",
                        sum(moved) / 2**20)


def main():
    pyplot = common.use_style()
    sets = read()
    figure, axis = pyplot.subplots(figsize=(4.4, 3))
    for i, label in enumerate(WAYS.values()):
        axis.plot([], [], linestyle="none", label=label,
                  color=common.COLOURS[i], marker=common.MARKERS[i])
    for place, (jobs, ways) in enumerate(sets.items()):
        plot(axis, place, jobs, ways)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_ylim(bottom=0)
    axis.set_xticks(range(len(sets)),
                    [jobs.replace("+", "\n+ ") for jobs in sets], fontsize=7)
    axis.set_ylabel("time at once ÷ one after the other\n"
                    "(min–median–max of runs)", fontsize=8)
    figure.legend(loc="outside lower center", ncols=2, fontsize=7)
    common.save(figure, HERE, "sharing")


if __name__ == "__main__":
    main()
