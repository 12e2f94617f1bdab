"""Trains models of the zoo with and without METS where everything fits, and runs
small ops; writes data/overhead.csv and data/small_ops.csv.

    measure.py BUILD

A run is a process with METS and one without, which wait for each other and take
turns of STEPS steps; which comes first alternates. How fast a process's steps are
differs from process to process. Small ops take turns likewise, in one process
each.
"""

import itertools
import os
import pathlib
import statistics
import subprocess
import sys

import common
import live

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["resnet50", "bert", "mnist_cnn"]
RUNS, TURNS, STEPS = 7, 2, 5
PHASES = live.Phases(3, STEPS, TURNS)
FIELDS = ["model", "batch", "run", "mets", "min_seconds", "median_seconds",
          "max_seconds", "steps", "load_average"]
SMALL_FIELDS = ["run", "mets", "nanoseconds", "load_average"]


def in_turn(without_and_with, turns):
    """(turn, one of the two)"""
    for turn in range(turns):
        for each in without_and_with[::-1 if turn % 2 else 1]:
            yield turn, each


def load_average():
    return round(os.getloadavg()[0], 1)


def train(build, model):
    """The results without METS and with it."""
    with live.Metsd(build, "2GiB") as metsd:
        trainings = [live.stock(build, model, *PHASES.options),
                     metsd.train(model, model, *PHASES.options)]
        with live.standing(*trainings):
            for turn, training in in_turn(trainings, TURNS):
                PHASES.run(turn, training)
            return [training.result() for training in trainings]


def measure(build):
    """The rows of the CSV."""
    for run, model in itertools.product(range(RUNS), MODELS):
        results = train(build, model)
        if live.outcome(results[0]) != live.outcome(results[1]):
            sys.exit(f"{model}: METS changed the result")
        for mets, result in enumerate(results):
            seconds = [second for turn in range(TURNS)
                       for second in PHASES.step_seconds(result, turn)]
            yield {"model": model, "batch": result["batch"], "run": run,
                   "mets": mets, "steps": len(seconds),
                   "min_seconds": min(seconds), "max_seconds": max(seconds),
                   "median_seconds": statistics.median(seconds),
                   "load_average": load_average()}


def measure_small_ops(build):
    """The rows of the other one."""
    with live.Metsd(build, "64MiB") as metsd:
        commands = [[*live.forks(build)[mets], str(HERE / "small_ops.py")]
                    for mets in (False, True)]
        commands[1] = metsd.metsctl("run", "--job", "small", "--", *commands[1])
        programs = [subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE)
                    for command in commands]
        for program in programs:
            program.stdout.readline()
        for turn, program in in_turn(programs, RUNS):
            program.stdin.write("\n")
            program.stdin.flush()
            yield {"run": turn, "mets": programs.index(program),
                   "nanoseconds": float(program.stdout.readline()),
                   "load_average": load_average()}
        for program in programs:
            program.communicate()


def main():
    build = pathlib.Path(sys.argv[1])
    common.write_rows(HERE / "data/overhead.csv", FIELDS, measure(build))
    common.write_rows(HERE / "data/small_ops.csv", SMALL_FIELDS,
                      measure_small_ops(build))
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure",
                      models={model: live.MODELS[model] for model in MODELS},
                      versions=live.versions(build))


if __name__ == "__main__":
    main()
