"""Plots data/quanta.csv beside data/nvshare.csv: time of two jobs together ÷
one after the other, and how long a job stands still at a time."""

import csv
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent


def read(name):
    with open(HERE / "data" / name, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def series():
    """{(job, percent of input work): [(quantum, together ÷ serial, stands
    still)]}; METS' own turns have the quantum None, nvshare's no third."""
    result = {}
    for row in read("quanta.csv"):
        quantum = row["quantum"]
        result.setdefault((row["trace"], int(row["input_work"])), []).append((
            None if quantum == "automatic" else float(quantum),
            float(row["total_seconds"]) / float(row["serial_seconds"]),
            float(row["still_seconds"])))
    serial, *rows = [row for row in read("nvshare.csv")
                     if row["quantum"] != "off"]
    for name, work in (("big_90", 10), ("big_50", 50)):
        column = f"{name}_seconds"
        result["nvshare", work] = [
            (float(row["quantum"]), float(row[column]) / float(serial[column]),
             None) for row in rows]
    return result


def main():
    pyplot = common.use_style()
    common.tell("least fairness of METS", min(
        float(row["fairness"]) for row in read("quanta.csv")
        if row["quantum"] == "automatic"))
    figure, axes = pyplot.subplots(1, 3, figsize=(7.2, 2.9))
    for i, ((job, work), points) in enumerate(sorted(series().items())):
        place = [10, 50].index(work)
        name = f"{job.removeprefix('mets-')} {work}"
        colour, marker = common.COLOURS[i // 2], common.MARKERS[i // 2]
        fixed = [point for point in points if point[0]]
        axes[place].plot(*zip(*[point[:2] for point in fixed]), color=colour,
                         marker=marker, label=job)
        for own in (point for point in points if point[0] is None):
            axes[place].axhline(own[1], color=colour, linestyle=":")
            axes[2].axhline(own[2], color=colour, linestyle=":")
            common.tell(f"{name} METS", own[1])
            common.tell(f"{name} METS still", own[2])
        for quantum, ratio, still in fixed:
            common.tell(f"{name} {quantum:.0f} s", ratio)
            if still is not None:
                common.tell(f"{name} {quantum:.0f} s still", still)
        if fixed[0][2] is not None:
            axes[2].plot([point[0] for point in fixed],
                         [point[2] for point in fixed], color=colour,
                         marker=marker, linestyle=["-", "--"][place])
    for axis, work in zip(axes, (10, 50)):
        axis.set_title(f"{work} % input work", fontsize=8)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_ylabel("together ÷ one after the other", fontsize=8)
    axes[2].set_title("dashed: 50 % input work", fontsize=8)
    axes[2].set_ylabel("longest standstill (s)", fontsize=8)
    axes[2].set_yscale("log")
    for axis in axes:
        axis.set_xscale("log")
        axis.set_xlabel("quantum (s); dotted: METS' own", fontsize=8)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3,
                  fontsize=7)
    common.save(figure, HERE, "quanta")


if __name__ == "__main__":
    main()
