"""Simulates pairs of one trace; writes data/pairs.csv, meta.json.

Two copies of each trace on a device of which one alone needs 95 or 60 %, as
METS decides and with quanta of fixed lengths, on a bus of 12 GB/s each way.
"""

import csv
import pathlib
import sys

import common

HERE = pathlib.Path(__file__).resolve().parent
TRACES = ["mets-cnn", "mets-resnet", "mets-lstm", "mets-attention",
          "mets-embedding", "mets-autoencoder"]
QUANTA = ["automatic", "5", "10", "30", "300"]
PARTS = [95, 60]  # Percent of the device that one copy needs.
REPEAT = 25       # 100 steps: the traces have 4.
FIELDS = ["trace", "part", "quantum", "serial_seconds", "total_seconds",
          "fairness", "ideal_seconds", "stall_seconds", "evicted_bytes",
          "restored_bytes", "error"]


def simulate(build, trace, part, quantum):
    """One row of the CSV."""
    row = {"trace": trace, "part": part, "quantum": quantum}
    words = ["--device-memory", f"{5000 / part:.4f}%", "--bus-gbps", "12",
             "--repeat", str(REPEAT)]
    if quantum != "automatic":
        words += ["--quantum", quantum]
    report, row["error"] = common.simulate(build, [trace, trace], words)
    if report is None:
        return row
    for field in ["serial_seconds", "total_seconds", "fairness"]:
        row[field] = report[field]
    for field in FIELDS[6:10]:
        row[field] = sum(job[field] for job in report["jobs"])
    return row


def main():
    build = sys.argv[1]
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    with open(data / "pairs.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for trace in TRACES:
            for part in PARTS:
                for quantum in QUANTA:
                    writer.writerow(simulate(build, trace, part, quantum))
            print(trace, flush=True)
    common.write_meta(data / "meta.json", "reproduce.sh --measure")


if __name__ == "__main__":
    main()
