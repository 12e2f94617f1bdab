"""Plots data/batches.csv: the largest batch without METS and with it."""

import collections
import csv
import json
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent
# A batch in which METS moves nothing fits as it is.
LABELS = {"stock": "without METS", "still": "METS, nothing moved",
          "mets": "METS"}


def read():
    """{model: {kind of LABELS: the largest batch that trains, "peak": the bytes
    of the largest with METS}}"""
    models = collections.defaultdict(dict)
    with open(HERE / "data/batches.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["trains"] == "0":
                continue
            kinds = ["stock"] if row["mets"] == "0" else ["mets"]
            if row["mets"] == "1" and row["moved_bytes"] == "0":
                kinds.append("still")
            best = models[row["model"]]
            for kind in kinds:
                best[kind] = max(best.get(kind, 0), int(row["batch"]))
            if best.get("mets") == int(row["batch"]):
                best["peak"] = int(row["peak_bytes"])
    return models


def main():
    pyplot = common.use_style()
    models = read()
    figure, axis = pyplot.subplots(figsize=(4.4, 2.6))
    for i, (kind, label) in enumerate(LABELS.items()):
        bars = axis.bar([place + 0.25 * (i - 1) for place in range(len(models))],
                        [best[kind] for best in models.values()], 0.25,
                        label=label, color=common.COLOURS[i])
        axis.bar_label(bars, fontsize=7)
        for model, best in models.items():
            common.tell(f"{model} {kind}", best[kind])
    device = json.loads((HERE / "data/meta.json").read_text())["device_bytes"]
    for model, best in models.items():
        common.tell(f"{model} peak", best["peak"] / device)
    axis.set_xticks(range(len(models)), list(models))
    axis.set_ylabel("largest batch that trains")
    figure.legend(loc="outside lower center", ncols=3, fontsize=7)
    common.save(figure, HERE, "batches")


if __name__ == "__main__":
    main()
