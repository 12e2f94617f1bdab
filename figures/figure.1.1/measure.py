"""Simulates each trace with each policy; writes data/policies.csv, meta.json.

recorded: the recorded times, 12 GB/s each way. ops100: those divided
by 100 (at least the bytes that an op touches over 2.5 TB/s, and 4 us), 55 GB/s.
settled_seconds is what all repetitions would take at the mean of their second
half, when METS knows the step and what is loaded ahead.
"""

import itertools
import pathlib
import sys

import common

HERE = pathlib.Path(__file__).resolve().parent
TRACES = ["mets-cnn", "mets-resnet", "mets-lstm", "mets-attention",
          "mets-embedding", "mets-autoencoder", "singa-vgg-cifar-access"]
POLICIES = ["lru", "largest_first", "next_use", "absence",
            "absence_area", "weighted_absence_area", "absence_vote", "belady"]
MACHINES = {"recorded": ["--bus-gbps", "12"],
            "ops100": ["--bus-gbps", "55", "--accelerate", "100"]}
PERCENTS = [80, 60, 40]
# The METS traces have 4 steps. Plans begin after some; the first ones are made
# again within two seconds, which are more steps where ops are fast.
REPEAT = {"recorded": 25, "ops100": 100}
FIELDS = ["machine", "trace", "policy", "percent", "ideal_seconds", "seconds",
          "settled_seconds", "least_seconds", "stall_seconds", "evicted_bytes", "restored_bytes",
          "least_restored_bytes", "hump_bytes", "peak_bytes", "device_bytes",
          "error"]


def simulate(build, machine, trace, policy, percent):
    """One row of the CSV."""
    row = {"machine": machine, "trace": trace, "policy": policy,
           "percent": percent}
    words = ["--device-memory", f"{percent}%", "--policy", policy,
             *MACHINES[machine]]
    if trace.startswith("mets-"):
        words += ["--repeat", str(REPEAT[machine])]
    report, row["error"] = common.simulate(build, [trace], words)
    if report is None:
        return row
    row["device_bytes"] = report["device_bytes"]
    job = report["jobs"][0]
    row.update({k: v for k, v in job.items() if k in FIELDS})
    repeats = job["repeat_seconds"]
    late = repeats[len(repeats) // 2:]
    row["settled_seconds"] = sum(late) / len(late) * len(repeats)
    return row


def main():
    build = sys.argv[1]
    common.write_rows(HERE / "data/policies.csv", FIELDS, common.at_once(
        lambda what: simulate(build, *what),
        itertools.product(MACHINES, TRACES, POLICIES, PERCENTS)))
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure")


if __name__ == "__main__":
    main()
