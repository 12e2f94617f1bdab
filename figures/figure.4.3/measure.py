"""Replays recorded allocations on METS's client and on other allocators; writes
data/ALLOCATOR.json (google-benchmark's) and data/pools.csv.

    measure.py BUILD

tests/benchmarks/compare has the programs and says what they measure.
"""

import csv
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import common
import live
from calls import TRACES, calls

HERE = pathlib.Path(__file__).resolve().parent
ALLOCATORS = ["mets", "bfc", "malloc"]
ROUNDS = 5
ROOM = "6GiB"  # For METS where there is to be room for everything.


def run(build, allocator, *words, pool=ROOM):
    """One program; METS' has a metsd with such a pool and no swap space."""
    command = [build / f"bin/compare/compare_{allocator}", *words]
    if allocator != "mets":
        return subprocess.run(command, check=False).returncode
    with live.Metsd(build, pool, swap="0") as metsd:
        return subprocess.run(command, check=False, env=dict(
            os.environ, METS_RUN_DIR=metsd.run_dir)).returncode


def benchmark(build, allocator, path):
    """google-benchmark's JSON of one trace, in a process of its own."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as out:
        if run(build, allocator, f"--benchmark_out={out.name}",
               "--benchmark_min_time=0.05", path):
            sys.exit(f"{allocator} failed")
        return json.loads(pathlib.Path(out.name).read_text("utf-8"))


def benchmarks(build, paths):
    """{allocator: google-benchmark's JSON of all traces and rounds}. They take
    turns, so that what else the machine does for a while meets all alike."""
    results = {}
    for path in paths:
        for _ in range(ROUNDS):
            for allocator in ALLOCATORS:
                said = benchmark(build, allocator, path)
                if allocator in results:
                    results[allocator]["benchmarks"] += said["benchmarks"]
                else:
                    results[allocator] = said
    return results


def least_pool(build, allocator, path, live_bytes):
    """The smallest pool, in steps of a 100th of what lives at most, in which the
    trace fits."""
    low, high = 99, 200
    while high - low > 1:
        middle = (low + high) // 2
        pool = live_bytes * middle // 100 >> 16 << 16
        fits = run(build, allocator, "--fits", str(pool), path, pool=pool) == 0
        low, high = (low, middle) if fits else (middle, high)
    return high


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, \
            open(HERE / "data/pools.csv", "w", encoding="utf-8") as file:
        paths, live_bytes = [], {}
        for name in TRACES:
            text, live_bytes[name] = calls(name)
            paths.append(pathlib.Path(folder, name + ".calls"))
            paths[-1].write_text(text, encoding="utf-8")
        for allocator, said in benchmarks(build, paths).items():
            (HERE / f"data/{allocator}.json").write_text(
                json.dumps(said, indent=1) + "\n", "utf-8")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["trace", "live_bytes", "allocator", "percent"])

        def row(case):
            (name, path), allocator = case
            return name, live_bytes[name], allocator, least_pool(
                build, allocator, path, live_bytes[name])

        writer.writerows(common.at_once(row, itertools.product(
            zip(TRACES, paths), ("mets", "bfc"))))
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure",
                      versions=live.versions(build))


if __name__ == "__main__":
    main()
