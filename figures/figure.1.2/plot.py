"""Plots data/pairs.csv: the time of two jobs together ÷ one after the other,
and prints pairs that fit ÷ the device-time bound."""

import collections
import csv
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent
PARTS = [95, 60]


def label_of(row):
    if row["input_work"] != "0":
        return f"METS, {row['input_work']} % input work"
    if row["quantum"] == "automatic":
        return "METS"
    return f"quanta of {row['quantum']} s"


def read():
    """{part: {label: {trace: together ÷ serial}}}, and, for pairs that fit,
    {trace: together ÷ device-time bound}."""
    ratios = collections.defaultdict(lambda: collections.defaultdict(dict))
    fits = {}
    with open(HERE / "data/pairs.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["error"]:
                continue
            total = float(row["total_seconds"])
            if int(row["part"]) in PARTS:
                ratios[int(row["part"])][label_of(row)][row["trace"]] = (
                    total / float(row["serial_seconds"]))
            else:
                # Two copies: half of the sum is the longest alone.
                fits[row["trace"]] = total / max(
                    float(row["device_seconds"]),
                    float(row["ideal_seconds"]) / 2)
    return ratios, fits


def main():
    pyplot = common.use_style()
    ratios, fits = read()
    common.tell("worst where both fit", max(fits.values()))
    for part, of_part in ratios.items():
        for label, values in of_part.items():
            common.tell(f"least at {part}, {label}", min(values.values()))
            common.tell(f"most at {part}, {label}", max(values.values()))
    figure, axes = pyplot.subplots(1, len(PARTS), sharey=True,
                                   figsize=(3.6 * len(PARTS), 3.2))
    for axis, part in zip(axes, PARTS):
        of_part = ratios[part]
        traces = list(of_part["METS"])
        for i, (label, values) in enumerate(of_part.items()):
            places = [trace + 0.1 * (i - 3) for trace in range(len(traces))]
            axis.plot(places, [values.get(t, float("nan")) for t in traces],
                      linestyle="none", label=label, color=common.COLOURS[i],
                      marker=common.MARKERS[i])
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_xticks(range(len(traces)),
                        [t.replace("mets-", "") for t in traces], rotation=30)
        axis.set_title(f"each alone needs {part} % of the device", fontsize=8)
    axes[0].set_ylim(bottom=0.4)
    axes[0].set_ylabel("time together ÷\none after the other")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4,
                  fontsize=7)
    common.save(figure, HERE, "pairs")


if __name__ == "__main__":
    main()
