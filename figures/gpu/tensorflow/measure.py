"""Trainings of TensorFlow on a GPU through METS, against stock TensorFlow.

    measure.py --bundle build/bundle --out FOLDER [--only two] [--models cnn]

For every model `stock`, without METS, and `fits`, with METS and room for all, in
turn, some steps of each at a time; and by the names that --only takes

    one_and_half with METS, a job of 1.5 times its pool: it swaps by itself
    two          the same, of 2 times its pool
    pair_80      two jobs at once with METS (seeds 0, 1), each of which needs 80 %
                 of the pool, against one after the other without METS
    pair_95      the same, 95 %
    pair_input   pair_80, with so long asleep before each step that it is 60 % of
                 the time

What a job needs is what `fits` had. `identical`: losses and weights are those of
`stock`. Ratios of times are of medians of steps (`fits`: the median over the
rounds), the pairs' of whole times.
`to_bound`: a step over the larger of `fits`' step and the time in which the bus
moves the fewest bytes that must, peak less pool, out and in, at the speeds of
plain copies in this run (`bus`). FOLDER gets tensorflow.json, after every
experiment, and the logs. What fails leaves its error there, and the others go on.

Processes of one group start and warm up together, since that takes most of their
time, and then have the device one after the other: first `stock` and `fits` of
all models, then each model's others.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent))
from lab import Daemon, Failed, Job, about, parse_size, tail  # noqa: E402

SEEDS = (0, 1)
MIB = 1 << 20
INPUT_PART = 0.6
ROUNDS = 5
# Batch, and what else train.py gets.
MODELS = {
    "mlp": ["--batch", 4096],
    "cnn": ["--batch", 512],
    "lstm": ["--batch", 512],
    "transformer": ["--batch", 16],
    "resnet50": ["--batch", 128],
}


class Training:
    """A process of train.py; it has the device for a round at a time."""

    def __init__(self, lab, name, model, seed=0, daemon=None, rounds=1,
                 more=()):
        self._out = lab.arguments.out / f"{name}.result"
        for old in lab.arguments.out.glob(f"{name}.*"):
            old.unlink()
        command = [lab.arguments.python, HERE / "train.py", "--model", model,
                   *MODELS[model], "--seed", seed, "--steps",
                   lab.arguments.steps, "--rounds", rounds, "--out", self._out,
                   "--go", self._out, *more]
        if daemon:
            command = [lab.bin / "metsctl", "--run-dir", daemon.run_dir, "run",
                       "--job", name, "--", *command]
        env = {"METS_REQUIRED": "1"} if daemon else {}
        self._job = lab.start(command, lab.log(name), env)
        self._limit = lab.arguments.limit

    def wait_until_ready(self):
        self._wait_for(".ready")

    def go(self, part=0):
        self.wait_until_ready()
        self._out.with_suffix(f".go{part}").touch()

    def wait(self, part=0):
        self._wait_for(f".done{part}")

    def result(self):
        self._out.with_suffix(".end").touch()
        self._wait(self._job.done)
        return json.loads(self._out.read_text("utf-8"))

    def kill(self):
        self._job.kill()

    def _wait_for(self, suffix):
        self._wait(lambda: self._job.done() or
                   self._out.with_suffix(suffix).exists())

    def _wait(self, done):
        deadline = time.monotonic() + self._limit
        while not done():
            if time.monotonic() > deadline:
                self._job.show_stacks()
                raise Failed(f"not done in time\n{tail(self._job.log, 6)}")
            time.sleep(0.002)


class Lab:
    def __init__(self, arguments):
        self.arguments = arguments
        self.bin = arguments.bundle.resolve() / "bin"
        self.swap = parse_size(arguments.swap_space)
        self.stock = {}  # Results by model and seed.
        self.fits = {}  # Figures by model.
        self.bus = {}
        self.trainings = []  # Of the group that is being measured.

    def log(self, name):
        return self.arguments.out / f"{name}.log"

    def start(self, command, log, env=None):
        return Job([str(word) for word in command], log, env)

    def train(self, *arguments, **more):
        training = Training(self, *arguments, **more)
        self.trainings.append(training)
        return training

    def wait_until_ready(self):
        for training in self.trainings:
            training.wait_until_ready()

    def finish(self, *trainings):
        for training in trainings:
            training.wait_until_ready()
        for training in trainings:
            training.go()
        for training in trainings:
            training.wait()
        return [training.result() for training in trainings]

    def end_group(self):
        for training in self.trainings:
            training.kill()
        self.trainings.clear()


def round_ms(result):
    seconds = result["step_seconds"]
    size = len(seconds) // ROUNDS
    return [1e3 * statistics.median(seconds[i * size:(i + 1) * size])
            for i in range(ROUNDS)]


def same(a, b):
    return a["losses"] == b["losses"] and a["sha256"] == b["sha256"]


def step_ms(result):
    return 1e3 * statistics.median(result["step_seconds"])


def measure_bus(lab):
    with Daemon(lab, "bus", parse_size("4GiB")) as daemon:
        done = subprocess.run(
            [lab.bin / "metsctl", "--run-dir", daemon.run_dir, "bench",
             "--move", "1GiB", "--json"],
            capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise Failed(f"metsctl bench: {done.stderr}")
    lab.bus = json.loads(done.stdout)["figures"]
    return {name: lab.bus[name] for name in
            ("raw_out_gbps", "raw_in_gbps", "raw_both_gbps")}


# An experiment starts its processes, yields, and measures when it goes on.


def alone(lab, model):
    """Without METS and with it, with room for all, in turn."""
    without = lab.train(f"{model}-stock-0", model, rounds=ROUNDS)
    other = [lab.train(f"{model}-stock-{seed}", model, seed)
             for seed in lab.seeds if seed > 0]
    pool = parse_size(lab.arguments.pool)
    with Daemon(lab, f"{model}-fits", pool) as daemon:
        training = lab.train(f"{model}-fits", model, daemon=daemon,
                             rounds=ROUNDS)
        yield
        for part in range(ROUNDS):
            for each in (without, training):
                each.go(part)
                each.wait(part)
        known, result = without.result(), training.result()
        had = daemon.status()["jobs"][0]["peak_resident_bytes"]
    lab.stock[model, 0] = known
    for seed, each in zip(SEEDS[1:], other):
        lab.stock[model, seed], = lab.finish(each)
    lab.fits[model] = with_mets(lab, model, result, pool, had)
    lab.fits[model]["ratio"] = statistics.median(
        a / b for a, b in zip(round_ms(result), round_ms(known)))
    return {"stock": {"step_ms": step_ms(known), "losses": known["losses"][:3],
                      "round_ms": round_ms(known),
                      "peak_bytes": known["peak_bytes"]},
            "fits": {**lab.fits[model], "round_ms": round_ms(result)}}


def with_mets(lab, model, result, pool, had):
    known = lab.stock[model, 0]
    return {"step_ms": step_ms(result), "ratio": step_ms(result) /
            step_ms(known), "identical": same(result, known),
            "peak_bytes": result["peak_bytes"], "pool_bytes": pool,
            "peak_resident_bytes": had,
            "moved_bytes_a_step": result["moved_bytes"] / lab.arguments.steps,
            "mets": result["mets"]}


def pool_for(lab, model, part):
    """The pool of which `part` is what a job needs."""
    need = int(lab.fits[model]["peak_resident_bytes"] / part)
    return -(-need // (32 * MIB)) * 32 * MIB


def tight(lab, name, model, part):
    pool = pool_for(lab, model, part)
    with Daemon(lab, f"{model}-{name}", pool) as daemon:
        training = lab.train(f"{model}-{name}", model, daemon=daemon)
        yield
        result, = lab.finish(training)
        had = daemon.status()["jobs"][0]["peak_resident_bytes"]
    figures = with_mets(lab, model, result, pool, had)
    least = max(0, lab.fits[model]["peak_bytes"] - pool)
    bus = 1e-6 * least * (1 / lab.bus["raw_out_gbps"] +
                          1 / lab.bus["raw_in_gbps"])
    figures["least_bytes_a_step"] = 2 * least
    figures["bound_ms"] = max(bus, lab.fits[model]["step_ms"])
    figures["to_bound"] = figures["step_ms"] / figures["bound_ms"]
    return {name: figures}


def one_and_half(lab, model):
    return (yield from tight(lab, "one_and_half", model, 1.5))


def two(lab, model):
    return (yield from tight(lab, "two", model, 2))


def pair(lab, name, model, part, asleep=0):
    """`asleep`: seconds before each step."""
    known = [lab.stock[model, seed] for seed in SEEDS]
    pool = pool_for(lab, model, part)
    more = ["--input-seconds", asleep]
    with Daemon(lab, f"{model}-{name}", pool) as daemon:
        trainings = [lab.train(f"{model}-{name}-{seed}", model, seed,
                               daemon=daemon, more=more) for seed in SEEDS]
        yield
        results = lab.finish(*trainings)
    seconds = (max(r["end"] for r in results) -
               min(r["begin"] for r in results))
    serial = sum(r["seconds"] + lab.arguments.steps * asleep for r in known)
    return {name: {
        "seconds": seconds, "serial_seconds": serial,
        "ratio": seconds / serial, "pool_bytes": pool,
        "identical": [same(a, b) for a, b in zip(results, known)],
        "moved_bytes": sum(r["moved_bytes"] for r in results)}}


def pair_80(lab, model):
    return (yield from pair(lab, "pair_80", model, 0.8))


def pair_95(lab, model):
    return (yield from pair(lab, "pair_95", model, 0.95))


def pair_input(lab, model):
    step = 1e-3 * step_ms(lab.stock[model, 0])
    return (yield from pair(lab, "pair_input", model, 0.8,
                            step * INPUT_PART / (1 - INPUT_PART)))


EXPERIMENTS = {e.__name__: e for e in (
    one_and_half, two, pair_80, pair_95, pair_input)}
FAULTS = (Failed, OSError, ValueError, KeyError, subprocess.TimeoutExpired)


def measure(lab, group, note):
    """Runs [(model, experiment)]; `note` gets each one's figures."""
    begun = []
    try:
        for model, experiment in group:
            running = experiment(lab, model)
            try:
                next(running)
                begun.append((model, experiment, running))
            except FAULTS as error:
                note(model, {experiment.__name__: {"error": repr(error)}})
        try:
            lab.wait_until_ready()
        except Failed:
            pass  # Its experiment says so.
        for model, experiment, running in begun:
            try:
                next(running)
            except StopIteration as end:
                note(model, end.value)
            except FAULTS as error:
                note(model, {experiment.__name__: {"error": str(error)}})
    finally:
        lab.end_group()
        for _, _, running in begun:
            running.close()


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=pathlib.Path,
                        default=ROOT / "build" / "bundle")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default=",".join(EXPERIMENTS),
                        help="what is measured besides stock and fits")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--pool", default="32GiB", help="of `fits`")
    parser.add_argument("--swap-space", default="16GiB")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--limit", type=float, default=90,
                        help="seconds for one process to start, and to train")
    parser.add_argument("--budget", type=float, default=1e6,
                        help="seconds for all: no group begins later")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--commit", default="", help="where there is no git")
    arguments = parser.parse_args()
    for known, given in ((EXPERIMENTS, arguments.only),
                         (MODELS, arguments.models)):
        unknown = set(given.split(",")) - set(known)
        if unknown:
            parser.error(f"unknown: {', '.join(sorted(unknown))}")
    arguments.out = arguments.out.resolve()
    return arguments


def main():
    arguments = parse()
    arguments.out.mkdir(parents=True, exist_ok=True)
    lab = Lab(arguments)
    models = arguments.models.split(",")
    chosen = [EXPERIMENTS[name] for name in arguments.only.split(",")]
    lab.seeds = SEEDS if any("pair" in e.__name__ for e in chosen) else (0,)
    report = about("figures/gpu/tensorflow/measure.py", arguments.commit)
    report["figures"] = {}
    begin, failed = time.monotonic(), False

    def note(model, measured):
        nonlocal failed
        report["figures"].setdefault(model, {}).update(measured)
        for name, figures in measured.items():
            failed |= "error" in figures
            said = {key: value for key, value in figures.items()
                    if key != "mets"}
            print(f"{time.monotonic() - begin:4.0f} s {model} {name}: {said}",
                  flush=True)
        (arguments.out / "tensorflow.json").write_text(
            json.dumps(report, indent=1) + "\n", encoding="utf-8")

    report["figures"]["bus"] = measure_bus(lab)
    measure(lab, [(model, alone) for model in models], note)
    for model in models:
        if model in lab.fits and time.monotonic() - begin < arguments.budget:
            measure(lab, [(model, e) for e in chosen], note)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
