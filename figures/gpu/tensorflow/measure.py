"""Trainings of TensorFlow on a GPU through METS, against stock TensorFlow.

    measure.py --bundle build/bundle --out FOLDER [--only fits,tight] [--models cnn]

Experiments, by the names that --only takes, each for every model:

    stock  without METS: losses, weights, step times, peak memory
    fits   with METS and room for all
    tight  with METS, in --part of what `fits` had: the job swaps by itself
    pair   two at once with METS (seeds 0, 1), in a pool of 1.25 of one's need,
           against both one after the other without METS

`identical`: losses and weights are those of `stock`. Ratios of times are of
medians of steps, the pair's of whole times. FOLDER gets tensorflow.json, after
every run, and the logs. What fails leaves its error there, and the others go on.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent))
from lab import Daemon, Failed, Job, about, parse_size, tail  # noqa: E402

EXPERIMENTS = ("stock", "fits", "tight", "pair")
SEEDS = (0, 1)
MIB = 1 << 20
# Batch, and what else train.py gets.
MODELS = {
    "mlp": ["--batch", 4096],
    "cnn": ["--batch", 512],
    "lstm": ["--batch", 512],
    "transformer": ["--batch", 16],
    "resnet50": ["--batch", 128],
}


class Lab:
    def __init__(self, arguments):
        self.arguments = arguments
        self.bin = arguments.bundle.resolve() / "bin"
        self.swap = parse_size(arguments.swap_space)
        self.stock = {}  # Results by model and seed.
        self.need = {}  # Bytes of the pool by model.

    def log(self, name):
        return self.arguments.out / f"{name}.log"

    def start(self, command, log, env=None):
        return Job([str(word) for word in command], log, env)

    def train(self, name, model, seed=0, daemon=None, more=()):
        out = self.arguments.out / f"{name}.result"
        out.unlink(missing_ok=True)
        command = [self.arguments.python, HERE / "train.py", "--model", model,
                   *MODELS[model], "--seed", seed, "--steps",
                   self.arguments.steps, "--out", out, *more]
        if daemon:
            command = [self.bin / "metsctl", "--run-dir", daemon.run_dir, "run",
                       "--job", name, "--", *command]
        env = {"METS_REQUIRED": "1"} if daemon else {}
        return self.start(command, self.log(name), env), out

    def finish(self, jobs):
        """The results of [(job, file)]; kills all if one fails."""
        deadline = time.monotonic() + self.arguments.limit
        try:
            while not all([job.done() for job, _ in jobs]):
                if time.monotonic() > deadline:
                    for job, _ in jobs:
                        job.show_stacks()
                    raise Failed("not done in time\n" + "\n".join(
                        f"{job.log.name}: {tail(job.log, 6)}"
                        for job, _ in jobs))
                time.sleep(0.02)
            return [json.loads(out.read_text("utf-8")) for _, out in jobs]
        finally:
            for job, _ in jobs:
                job.kill()


def same(a, b):
    return a["losses"] == b["losses"] and a["sha256"] == b["sha256"]


def step_ms(result):
    return 1e3 * statistics.median(result["step_seconds"])


def stock_of(lab, model, seed=0):
    if (model, seed) not in lab.stock:
        lab.stock[model, seed], = lab.finish(
            [lab.train(f"{model}-stock-{seed}", model, seed)])
    return lab.stock[model, seed]


def stock(lab, model):
    result = stock_of(lab, model)
    return {"step_ms": step_ms(result), "peak_bytes": result["peak_bytes"],
            "losses": result["losses"][:3]}


def with_mets(lab, name, model, pool):
    with Daemon(lab, f"{model}-{name}", pool) as daemon:
        result, = lab.finish([lab.train(f"{model}-{name}", model,
                                        daemon=daemon)])
        had = daemon.status()["jobs"][0]["peak_resident_bytes"]
    figures = {"step_ms": step_ms(result), "peak_bytes": result["peak_bytes"],
               "pool_bytes": pool, "peak_resident_bytes": had,
               "mets": result["mets"]}
    known = stock_of(lab, model)
    figures["ratio"] = step_ms(result) / step_ms(known)
    figures["identical"] = same(result, known)
    return figures


def fits(lab, model):
    figures = with_mets(lab, "fits", model, parse_size(lab.arguments.pool))
    lab.need[model] = figures["peak_resident_bytes"]
    return figures


def need_of(lab, model):
    return lab.need.get(model) or int(1.1 * stock_of(lab, model)["peak_bytes"])


def whole(size):
    return -(-size // (32 * MIB)) * 32 * MIB


def tight(lab, model):
    return with_mets(lab, "tight", model,
                     whole(int(lab.arguments.part * need_of(lab, model))))


def pair(lab, model):
    known = [stock_of(lab, model, seed) for seed in SEEDS]
    meeting = lab.arguments.out / f"{model}-meet"
    meeting.mkdir(exist_ok=True)
    for old in meeting.iterdir():
        old.unlink()
    pool = whole(int(1.25 * need_of(lab, model)))
    with Daemon(lab, f"{model}-pair", pool) as daemon:
        results = lab.finish([
            lab.train(f"{model}-pair-{seed}", model, seed, daemon,
                      ["--meet", meeting, "--parties", len(SEEDS)])
            for seed in SEEDS])
    seconds = (max(r["end"] for r in results) -
               min(r["begin"] for r in results))
    serial = sum(r["seconds"] for r in known)
    return {"seconds": seconds, "serial_seconds": serial,
            "ratio": seconds / serial, "pool_bytes": pool,
            "identical": [same(a, b) for a, b in zip(results, known)],
            "evicted_bytes": sum(r["mets"]["evicted_bytes"] for r in results)}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=pathlib.Path,
                        default=ROOT / "build" / "bundle")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default=",".join(EXPERIMENTS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--pool", default="64GiB", help="of `fits`")
    parser.add_argument("--part", type=float, default=0.7)
    parser.add_argument("--swap-space", default="48GiB")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--limit", type=float, default=60,
                        help="seconds for one run")
    parser.add_argument("--budget", type=float, default=1e6,
                        help="seconds for all: no run begins later")
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
    report = about("figures/gpu/tensorflow/measure.py", arguments.commit)
    report["figures"] = {}
    begin, failed = time.monotonic(), False
    for model in arguments.models.split(","):
        report["figures"][model] = figures = {}
        for name in arguments.only.split(","):
            if time.monotonic() - begin > arguments.budget:
                continue
            start = time.monotonic()
            try:
                figures[name] = globals()[name](lab, model)
            except (Failed, OSError, ValueError, KeyError) as error:
                figures[name] = {"error": f"{type(error).__name__}: {error}"}
                failed = True
            said = {key: value for key, value in figures[name].items()
                    if key != "mets"}
            print(f"{model} {name} ({time.monotonic() - start:.0f} s): {said}",
                  flush=True)
            (arguments.out / "tensorflow.json").write_text(
                json.dumps(report, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
