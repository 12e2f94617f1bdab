"""Simulates each trace with each policy; writes data/policies.csv, meta.json.

recorded: the recorded times, 12 GB/s each way. ops100: those divided
by 100 (at least the bytes that an op touches over 2.5 TB/s, and 4 us), 55 GB/s.
"""

import csv
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
REPEAT = {"recorded": 25, "ops100": 50}
FIELDS = ["machine", "trace", "policy", "percent", "ideal_seconds", "seconds",
          "least_seconds", "stall_seconds", "evicted_bytes", "restored_bytes",
          "least_restored_bytes", "hump_bytes", "peak_bytes", "device_bytes",
          "error"]


def simulate(build, trace, machine, policy, percent):
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
    row.update({k: v for k, v in report["jobs"][0].items() if k in FIELDS})
    return row


def main():
    build = sys.argv[1]
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    with open(data / "policies.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for machine in MACHINES:
            for trace in TRACES:
                for policy in POLICIES:
                    for percent in PERCENTS:
                        writer.writerow(simulate(build, trace, machine, policy,
                                                 percent))
                print(machine, trace, flush=True)
    common.write_meta(data / "meta.json", "reproduce.sh --measure")


if __name__ == "__main__":
    main()
