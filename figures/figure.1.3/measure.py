"""Runs the benchmark of decisions; writes data/decisions.csv and meta.json.

Several runs, since others on the machine disturb. All make the same decisions:
the rows of run "best" are those of each decision's best time. What one read from
memory costs meanwhile is in meta.json.
"""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import common

DECISIONS = 400
RUNS = 3
HERE = pathlib.Path(__file__).resolve().parent
NAME = re.compile(
    r"VictimsForOneRequest/(\w+)/sessions:(\d+)/buffers:(\d+)/")
FIELDS = ["run", "case", "sessions", "buffers", "p50_us", "p99_us", "victims"]


def command(build):
    words = [str(pathlib.Path(build) / "bin/tests/daemon_core_benchmark"),
             "--benchmark_filter=VictimsForOneRequest/(lru|next_use)/|"
             "VictimsForOneRequest/lru_idle/sessions:64/|OneReadFromMemory",
             "--benchmark_format=json"]
    # Others on the machine shall not be measured, where that is allowed.
    chrt = ["chrt", "--fifo", "1"]
    if shutil.which("chrt") and subprocess.run(
            chrt + ["true"], capture_output=True, check=False).returncode == 0:
        return chrt + words
    return words


def run(words, number):
    """The rows of one run, seconds of decisions by case, sessions and buffers,
    and nanoseconds for one read from memory."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as file:
        # Huge pages as in metsd's unit.
        environment = dict(os.environ, METS_BENCH_DECISIONS=str(DECISIONS),
                           METS_BENCH_TIMES=file.name,
                           GLIBC_TUNABLES="glibc.malloc.hugetlb=1")
        text = subprocess.run(words, env=environment, stdout=subprocess.PIPE,
                              text=True, check=True).stdout
        times = {tuple(row[:3]): list(map(float, row[3:]))
                 for row in csv.reader(file)}
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
    return rows, times, read_ns


def best(rows, runs):
    """The rows of one run again, with each decision's best time in `runs`."""
    for row in rows:
        key = row["case"], row["sessions"], row["buffers"]
        times = sorted(map(min, *(run[key] for run in runs)))
        yield {**row, "run": "best", "p50_us": 1e6 * times[len(times) // 2],
               "p99_us": 1e6 * times[len(times) * 99 // 100]}


def main():
    words = command(sys.argv[1])
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    read_ns, runs = [], []
    with open(data / "decisions.csv", "w", newline="",
              encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for number in range(1, RUNS + 1):
            rows, times, one_read = run(words, number)
            writer.writerows(rows)
            runs.append(times)
            read_ns.append(one_read)
            print("run", number, "of", RUNS, flush=True)
        writer.writerows(best(rows, runs))
    common.write_meta(data / "meta.json", "reproduce.sh --measure",
                      decisions=DECISIONS, read_from_memory_ns=read_ns,
                      real_time_priority=words[0] == "chrt")


if __name__ == "__main__":
    main()
