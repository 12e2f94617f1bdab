"""Plots ../gpu/mover.json and ../gpu/cuda.json: what METS moves a second
between a GPU and host memory, beside plain copies of the driver in the same
run."""

import json
import pathlib
import statistics

import common

HERE = pathlib.Path(__file__).resolve().parent
# What METS's is called, and the plain copy's.
ONE_WAY = [("out", "evict", "raw_out"), ("in", "restore", "raw_in")]


def read(name):
    return json.loads((HERE.parent / "gpu" / name).read_text("utf-8"))


def rows():
    """[(label, {"both" | "out" | "in": (METS's GB/s, the driver's)})], each a
    list of rounds."""
    daemon = read("cuda.json")["figures"]
    result = [("metsd", {
        "both": ([daemon["handover_duplex_gbps"]], [daemon["raw_both_gbps"]]),
        "out": ([daemon["handover_out_gbps"]], [daemon["raw_out_gbps"]]),
        "in": ([daemon["handover_in_gbps"]], [daemon["raw_in_gbps"]])})]
    for run in read("mover.json")["runs"]:
        figures = run["figures"]
        for size in (128, 32, 2):
            chunk = f"chunk_{size}mib_"
            if chunk + "raw_out_gbps" not in figures:
                continue
            ways = {way: ([figures[f"{chunk}{own}_gbps"]],
                          [figures[f"{chunk}{raw}_gbps"]])
                    for way, own, raw in ONE_WAY}
            ways["both"] = (figures[chunk + "hand_over_gbps"],
                            figures[chunk + "raw_both_gbps"])
            result.append((f"{size} MiB", ways))
    return result


def bar(axis, place, width, rounds, **style):
    middle = statistics.median(rounds)
    axis.bar(place, middle, width,
             yerr=[[middle - min(rounds)], [max(rounds) - middle]], capsize=2,
             error_kw={"linewidth": 0.8}, **style)


def main():
    pyplot = common.use_style()
    figure, axes = pyplot.subplots(1, 3, figsize=(7.2, 2.6), sharey=True)
    for axis, way, title in zip(axes, ("both", "out", "in"),
                                ("both ways", "to host memory", "back")):
        for place, (label, ways) in enumerate(rows()):
            mets, driver = ways[way]
            bar(axis, place - 0.2, 0.4, driver, color="#bbbbbb",
                label=None if place else "plain copies of the driver")
            bar(axis, place + 0.2, 0.4, mets, color=common.COLOURS[0],
                label=None if place else "METS")
            common.tell(f"{label} {way}", statistics.median(mets))
            common.tell(f"{label} {way} raw", statistics.median(driver))
            common.tell(f"{label} {way} to raw", statistics.median(mets) /
                        statistics.median(driver))
        axis.set_title(title, fontsize=8)
        axis.set_xticks(range(len(rows())), [label for label, _ in rows()],
                        fontsize=7)
        axis.grid(axis="x")
    axes[0].set_ylabel("GB/s")
    figure.legend(*axes[0].get_legend_handles_labels(),
                  loc="outside lower center", ncols=2, fontsize=7)
    common.save(figure, HERE, "handover")


if __name__ == "__main__":
    main()
