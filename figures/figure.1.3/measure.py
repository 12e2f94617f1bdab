"""Runs the benchmark of decisions; writes data/decisions.csv and meta.json.

Several runs, since others on the machine disturb: plot.py takes each point's
best. What one read from memory costs meanwhile is in meta.json.
"""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import common

DECISIONS = 400
RUNS = 2
HERE = pathlib.Path(__file__).resolve().parent
NAME = re.compile(
    r"VictimsForOneRequest/(\w+)/sessions:(\d+)/buffers:(\d+)/")
FIELDS = ["run", "case", "sessions", "buffers", "p50_us", "p99_us", "victims"]


def command(build):
    words = [str(pathlib.Path(build) / "bin/tests/daemon_core_benchmark"),
             "--benchmark_filter=VictimsForOneRequest|OneReadFromMemory",
             "--benchmark_format=json"]
    # Others on the machine shall not be measured, where that is allowed.
    chrt = ["chrt", "--fifo", "1"]
    if shutil.which("chrt") and subprocess.run(
            chrt + ["true"], capture_output=True, check=False).returncode == 0:
        return chrt + words
    return words


def run(words, number):
    """The rows of one run, and nanoseconds for one read from memory."""
    # Huge pages as in metsd's unit.
    environment = dict(os.environ, METS_BENCH_DECISIONS=str(DECISIONS),
                       GLIBC_TUNABLES="glibc.malloc.hugetlb=1")
    text = subprocess.run(words, env=environment, stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    rows, read_ns = [], 0.0
    for row in json.loads(text)["benchmarks"]:
        match = NAME.match(row["name"])
        if match is None:
            read_ns = row["cpu_time"]
            continue
        case, sessions, buffers = match.groups()
        rows.append({"run": number, "case": case, "sessions": sessions,
                     "buffers": buffers, "p50_us": row["p50_us"],
                     "p99_us": row["p99_us"], "victims": row["victims"]})
    return rows, read_ns


def main():
    words = command(sys.argv[1])
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    read_ns = []
    with open(data / "decisions.csv", "w", newline="",
              encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for number in range(1, RUNS + 1):
            rows, one_read = run(words, number)
            writer.writerows(rows)
            read_ns.append(one_read)
            print("run", number, "of", RUNS, flush=True)
    common.write_meta(data / "meta.json", "reproduce.sh --measure",
                      decisions=DECISIONS, read_from_memory_ns=read_ns,
                      real_time_priority=words[0] == "chrt")


if __name__ == "__main__":
    main()
