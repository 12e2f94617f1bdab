"""Records trainings; runs pairs of them live and simulates them.

    measure.py BUILD [--train]

Each training is recorded alone (data/MODEL.csv.xz). With --train, each pair then
trains at the same time under a metsd whose pool is a part of the sum of their
peaks, with plans and without, and mets-sim replays the two recordings with the
same pool (data/moved.csv).

How many quanta there are, and so how many bytes move, follows from how long ops
take; those of a pair take longer than they were recorded with, for both use
the same processors. Therefore the simulator's times are multiplied such that it
takes as long as the live pair did (column time_scale).
"""

import contextlib
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import common
import live

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["cnn", "mlp"]
PAIRS = [("cnn", "cnn"), ("cnn", "mlp"), ("mlp", "mlp")]
STEPS = 30
RUNS = 2
PERCENT = 60     # Of the sum of the peaks.
CHUNK = 64 << 10  # The pool is a multiple of it.
BUS_GBPS = 10    # What metsd takes a host device's bus to do.
FIELDS = ["pair", "plans", "run", "job", "pool_bytes", "time_scale",
          "live_evicted_bytes", "live_restored_bytes",
          "simulated_evicted_bytes", "simulated_restored_bytes",
          "live_seconds", "simulated_seconds"]


class Live(live.Metsd):
    """A metsd with the trainings of train.py as its jobs."""

    def __init__(self, build, pool, *flags):
        super().__init__(build, pool, *flags)
        self._python = live.forks(self._build)[True]

    def start(self, *words, **options):
        """Starts metsctl."""
        return subprocess.Popen(self.metsctl(*words), **options)

    def start_training(self, model, job):
        return self.start(
            "run", "--job", job, "--", *self._python, HERE / "train.py", model,
            STEPS, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=dict(os.environ, METS_REQUIRED="1"))


def expect(job, word):
    """The numbers behind the word that the training says next."""
    line = job.stdout.readline()
    said, _, numbers = line.partition(" ")
    if said != word:
        sys.exit(f"the training said '{line.strip()}' instead of '{word}'")
    return json.loads(numbers)


def go_on(*jobs):
    for job in jobs:
        job.stdin.write("\n")
        job.stdin.flush()


def record(build, model):
    """Writes data/MODEL.csv.xz."""
    file = HERE / "data" / f"{model}.csv.xz"
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
    with Live(build, "4GiB") as metsd:
        job = metsd.start_training(model, model)
        expect(job, "ready")
        recorder = metsd.start("record", model, file,
                               stdout=subprocess.DEVNULL)
        while not file.exists() and recorder.poll() is None:
            time.sleep(0.01)
        go_on(job)
        expect(job, "done")
        recorder.send_signal(signal.SIGINT)
        recorder.wait()
        job.wait()
        if recorder.returncode or job.returncode:
            sys.exit(f"recording {model} failed")


def train_together(build, pair, pool, plans):
    """[(evicted, restored)] of the jobs, and the seconds until both ended."""
    with Live(build, pool, "--plans", plans) as metsd:
        jobs = [metsd.start_training(model, f"{model}-{i}")
                for i, model in enumerate(pair)]
        before = [expect(job, "ready") for job in jobs]
        begin = time.monotonic()
        go_on(*jobs)
        after = [expect(job, "done") for job in jobs]
        seconds = time.monotonic() - begin
        if any([job.wait() for job in jobs]):
            sys.exit(f"a training of {pair} failed")
    return [tuple(b[field] - a[field] for field in
                  ("evicted_bytes_total", "restored_bytes_total"))
            for a, b in zip(before, after)], seconds


def simulate(build, pair, memory, plans, scale=1):
    words = ["--device-memory", str(memory), "--bus-gbps", str(BUS_GBPS),
             "--moves", "1", "--time-scale", str(scale)]
    if plans == "off":
        words.append("--no-plans")
    files = [f"../figure.1.4/data/{model}" for model in pair]
    return common.run_simulation(build, files, words)


def measure(build, pair, plans, run):
    """The rows of the CSV, one a job."""
    pool = simulate(build, pair, f"{PERCENT}%", plans)["device_bytes"]
    pool -= pool % CHUNK
    moved, seconds = train_together(build, pair, pool, plans)
    scale = seconds / simulate(build, pair, pool, plans)["total_seconds"]
    report = simulate(build, pair, pool, plans, scale)
    for i, job in enumerate(report["jobs"]):
        yield ["+".join(pair), plans, run, f"{pair[i]}-{i}", pool,
               round(scale, 3), *moved[i], job["evicted_bytes"],
               job["restored_bytes"], round(seconds, 3),
               round(report["total_seconds"], 3)]


def train(build, path):
    """Writes the rows of all pairs."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        for pair in PAIRS:
            for plans in ("off", "on"):
                for run in range(RUNS):
                    writer.writerows(measure(build, pair, plans, run))
                    file.flush()
            print(*pair, flush=True)


def main():
    build = sys.argv[1]
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    for model in MODELS:
        record(build, model)
        print(f"recorded {model}", flush=True)
    if "--train" in sys.argv:
        train(build, data / "moved.csv")
        common.write_meta(data / "meta.json", "reproduce.sh --train",
                          steps=STEPS)


if __name__ == "__main__":
    main()
