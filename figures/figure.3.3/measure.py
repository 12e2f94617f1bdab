"""Simulates two jobs that take turns on a device of which each needs 95 %;
writes data/quanta.csv and meta.json.

    measure.py BUILD

The jobs are as nvshare's big_90 and big_50 (data/nvshare.csv): alone they take
about 719 s on its GPU, of which 10 or 50 % need no device, and have 15.3 GB. The
recorded trainings are repeated until they take that long, with steps twice
as fast as recorded (1.8 and 0.8 s); they have less memory, so the bus is as much
slower than 12 GB/s as makes a copy of all of it take as long.
"""

import csv
import itertools
import pathlib
import sys
import tempfile

import common

HERE = pathlib.Path(__file__).resolve().parent
TRACES = ["mets-cnn", "mets-autoencoder"]
QUANTA = ["automatic", "5", "10", "20", "30", "60", "100", "300"]
INPUT = [10, 50]  # Percent of a step's time.
SECONDS, BYTES, GBPS = 719, 15.3e9, 12
TIME_SCALE = ["--time-scale", "0.5"]
TRACE_STEPS = 4
FIELDS = ["trace", "input_work", "quantum", "serial_seconds", "total_seconds",
          "fairness", "evicted_bytes", "still_seconds"]


def longest_standstill(file, shortest):
    """How long a job did nothing at most: what it holds did not change
    meanwhile. 0 when no such time was as long as `shortest`."""
    with open(file, encoding="utf-8") as lines:
        rows = [list(map(float, row)) for row in list(csv.reader(lines))[1:]]
    times, *jobs = zip(*rows)
    longest = 0
    for held in jobs:
        alive = [i for i, held_bytes in enumerate(held) if held_bytes > 0]
        for _, run in itertools.groupby(range(alive[0], alive[-1] + 1),
                                        held.__getitem__):
            run = list(run)
            longest = max(longest, times[run[-1]] - times[run[0]])
    return longest if longest >= shortest else 0


def simulate(build, trace, work, quantum):
    words = [*TIME_SCALE, "--input-work", str(work)]
    alone = common.run_simulation(build, [trace], words)
    repeat = round(SECONDS / alone["total_seconds"])
    peak = alone["jobs"][0]["peak_bytes"]
    words += ["--device-memory", f"{5000 / 95:.4f}%", "--repeat", str(repeat),
              "--bus-gbps", str(GBPS * peak / BYTES)]
    if quantum != "automatic":
        words += ["--quantum", quantum]
    with tempfile.NamedTemporaryFile(suffix=".csv") as residency:
        report = common.run_simulation(
            build, [trace, trace], [*words, "--residency", residency.name])
        still = longest_standstill(
            residency.name, alone["total_seconds"] / TRACE_STEPS)
    return {"trace": trace, "input_work": work, "quantum": quantum,
            "evicted_bytes": sum(j["evicted_bytes"] for j in report["jobs"]),
            "still_seconds": round(still, 3),
            **{field: report[field] for field in FIELDS if field in report}}


def main():
    build = sys.argv[1]
    common.write_rows(HERE / "data/quanta.csv", FIELDS, common.at_once(
        lambda what: simulate(build, *what),
        itertools.product(TRACES, INPUT, QUANTA)))
    common.write_meta(
        HERE / "data/meta.json", "reproduce.sh --measure",
        nvshare="G. Alexopoulos, diploma thesis, NTUA 2022, table 12.2 "
                "(doi:10.26240/heal.ntua.21988): Tesla P100, 16 GB")


if __name__ == "__main__":
    main()
