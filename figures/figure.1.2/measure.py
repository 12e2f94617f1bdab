"""Simulates pairs of one trace; writes data/pairs.csv, meta.json.

Two copies of each trace on a device of which one alone needs 95 or 60 %, as
METS decides and with quanta of fixed lengths, on a bus of 12 GB/s each way; as
METS decides, also with input work of 50 and 60 % of each step's time, and where
both fit (45 %).
"""

import pathlib
import sys

import common

HERE = pathlib.Path(__file__).resolve().parent
TRACES = ["mets-cnn", "mets-resnet", "mets-lstm", "mets-attention",
          "mets-embedding", "mets-autoencoder"]
QUANTA = ["automatic", "5", "10", "30", "300"]
PARTS = [95, 60]  # Percent of the device that one copy needs.
FITS = 45
# Copies that begin at once would pause at the same moments, again and again.
FITS_LATER = 0.1  # Seconds.
INPUT = [50, 60]  # Percent of a step's time.
REPEAT = 25       # 100 steps: the traces have 4.
SUMS = ["ideal_seconds", "device_seconds", "stall_seconds", "evicted_bytes",
        "restored_bytes"]
FIELDS = ["trace", "part", "quantum", "input_work", "serial_seconds",
          "total_seconds", "fairness", *SUMS, "error"]


def simulate(build, trace, part, quantum="automatic", input_work=0):
    """One row of the CSV."""
    row = {"trace": trace, "part": part, "quantum": quantum,
           "input_work": input_work}
    words = ["--device-memory", f"{5000 / part:.4f}%", "--bus-gbps", "12",
             "--repeat", str(REPEAT), "--input-work", str(input_work)]
    if quantum != "automatic":
        words += ["--quantum", quantum]
    second = f"{trace},start={FITS_LATER}" if part == FITS else trace
    report, row["error"] = common.simulate(build, [trace, second], words)
    if report is None:
        return row
    for field in ["serial_seconds", "total_seconds", "fairness"]:
        row[field] = report[field]
    for field in SUMS:
        row[field] = sum(job[field] for job in report["jobs"])
    return row


def cases():
    """The arguments of `simulate` for each row of the CSV."""
    for trace in TRACES:
        for part in PARTS:
            for quantum in QUANTA:
                yield trace, part, quantum
            for work in INPUT:
                yield trace, part, "automatic", work
        yield trace, FITS


def main():
    build = sys.argv[1]
    common.write_rows(HERE / "data/pairs.csv", FIELDS, common.at_once(
        lambda case: simulate(build, *case), cases()))
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure")


if __name__ == "__main__":
    main()
