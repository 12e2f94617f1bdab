"""Plots data/pairs.csv: the time of two jobs together ÷ one after the other."""

import collections
import csv
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent


def read():
    """{part: {quantum: {trace: together ÷ serial}}}"""
    ratios = collections.defaultdict(lambda: collections.defaultdict(dict))
    with open(HERE / "data/pairs.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["error"]:
                continue
            ratios[int(row["part"])][row["quantum"]][row["trace"]] = (
                float(row["total_seconds"]) / float(row["serial_seconds"]))
    return ratios


def main():
    pyplot = common.use_style()
    ratios = read()
    figure, axes = pyplot.subplots(1, len(ratios), sharey=True,
                                   figsize=(3.6 * len(ratios), 2.8))
    for axis, (part, of_part) in zip(axes, ratios.items()):
        traces = list(next(iter(of_part.values())))
        for i, (quantum, values) in enumerate(of_part.items()):
            label = "METS" if quantum == "automatic" else f"quanta of {quantum} s"
            places = [trace + 0.12 * (i - 2) for trace in range(len(traces))]
            axis.plot(places, [values.get(t, float("nan")) for t in traces],
                      linestyle="none", label=label, color=common.COLOURS[i],
                      marker=common.MARKERS[i])
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_xticks(range(len(traces)),
                        [t.replace("mets-", "") for t in traces], rotation=30)
        axis.set_title(f"each alone needs {part} % of the device", fontsize=8)
    axes[0].set_ylabel("time together ÷\none after the other")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5,
                  fontsize=7)
    common.save(figure, HERE, "pairs")


if __name__ == "__main__":
    main()
