"""Plots how long memory is idle within a step, from the recorded trainings.

A buffer is idle from one access to the next, from its allocation to its first
access, and from its last one to its end. What lies before the first access of
all, and behind the last, is cut off.
"""

import collections
import lzma
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent
TRACES = ["mets-cnn", "mets-resnet", "mets-lstm", "mets-attention",
          "mets-embedding", "mets-autoencoder"]
TRACE_STEPS = 4  # Each recording has so many whole steps.
SHARES = [i / 200 for i in range(1, 300)]  # Of a step.


def idle_times(file):
    """[(seconds, bytes)], one for each idle time of each buffer; and the
    seconds of a step."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split(",") for line in lines
                if not line.startswith(("#", "t_us"))]
    accesses = [float(row[0]) for row in rows if row[1] in ("read", "write")]
    begin, end = min(accesses), max(accesses)
    last, idle = {}, []
    for time_us, op, buffer, size, _ in rows:
        if op in ("begin", "end"):
            continue
        now = min(max(float(time_us), begin), end)
        if op != "malloc":
            idle.append((1e-6 * (now - last[buffer][0]), int(size)))
        last[buffer] = now, int(size)
        if op == "free":
            del last[buffer]
    idle += [(1e-6 * (end - since), size) for since, size in last.values()]
    return idle, 1e-6 * (end - begin) / TRACE_STEPS


def idle_parts(idle, step):
    """For each of SHARES, the part of all memory × time that lies in idle times
    of at least this share of a step."""
    weights = collections.Counter()
    for seconds, size in idle:
        weights[seconds / step] += seconds * size
    total = sum(weights.values())
    return [sum(weight for share, weight in weights.items() if share >= least)
            / total for least in SHARES]


def main():
    pyplot = common.use_style()
    figure, axis = pyplot.subplots(figsize=(4.4, 3))
    for i, trace in enumerate(TRACES):
        parts = idle_parts(*idle_times(
            common.ROOT / f"figures/traces/{trace}.csv.xz"))
        name = trace.removeprefix("mets-")
        axis.plot(SHARES, [100 * part for part in parts], label=name,
                  color=common.COLOURS[i], marker=common.MARKERS[i],
                  markevery=(6 * i, 40))
        for at, word in ((0.1, "a tenth"), (0.5, "half")):
            common.tell(f"{name} idle for {word}",
                        100 * parts[SHARES.index(at)])
    axis.set_ylim(0, 100)
    axis.set_xlim(0, SHARES[-1])
    axis.set_xlabel("idle for at least (steps)")
    axis.set_ylabel("of memory × time (%)")
    figure.legend(loc="outside lower center", ncols=3, fontsize=7)
    common.save(figure, HERE, "idle")


if __name__ == "__main__":
    main()
