"""Trainings of PyTorch that share a GPU through METS, against the same alone.

    measure.py --bundle build/bundle --out FOLDER [--only alone,pair] [--quick]

Experiments, by the names that --only takes:

    alone       both trainings (seeds 0, 1) one after the other, stock PyTorch
    alone_mets  the first alone with METS: what METS itself costs
    pair        both at once with METS, in a pool where by turns they fit
    pair_input  the same with input work, and one of them stock with it
    pair_kill   the same as pair beside a third, killed -9 at random times
    pair_cut    both, with more parameters, in a pool so small that these must move

Every pair's losses and parameters are compared with alone's. `ratio` is a
pair's time, from the first one's beginning to the last one's end, to the sum of
the times alone. FOLDER gets torch_turns.json after every experiment, and the
logs. An experiment that fails or takes longer than --limit leaves its error
there, and the others go on. --dry-run prints the commands that would run.
"""

import argparse
import json
import pathlib
import random
import shlex
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent))
from lab import Daemon, Failed, Job, parse_size, tail  # noqa: E402
from lab import about as lab_about  # noqa: E402

EXPERIMENTS = ("alone", "alone_mets", "pair", "pair_input", "pair_kill",
               "pair_cut")
SEEDS = (0, 1)
CHUNK = 128 << 20
GIB = 1 << 30


class Lab:
    """Starts things, and knows what is already measured."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.bin = arguments.bundle.resolve() / "bin"
        self.swap = parse_size(arguments.swap_space)
        self.figures = {}
        self.alone = {}  # Results of stock PyTorch by seed.
        self.alone_mets = None
        self.resident = 0  # The most that it had of the pool.
        self.deadline = 0.0

    def log(self, name):
        return self.arguments.out / f"{name}.log"

    def start(self, command, log, env=None):
        """A running Job; None in a dry run."""
        command = [str(word) for word in command]
        if self.arguments.dry_run:
            print(" ", shlex.join(command))
            return None
        return Job(command, log, env)

    def train(self, name, seed, daemon=None, batch=None, steps=None, more=(),
              priority=0):
        """Starts a training: its Job (or None) and where its result will be."""
        a = self.arguments
        out = self.arguments.out / f"{name}.result"
        out.unlink(missing_ok=True)
        command = [a.python, a.train, "--batch", batch or a.batch, "--dtype",
                   a.dtype, "--seed", seed, "--steps", steps or a.steps,
                   "--warmup", a.warmup, "--out", out, *more]
        if daemon:
            command = [self.bin / "metsctl", "--run-dir", daemon.run_dir, "run",
                       "--job", name, f"--priority={priority}", "--", *command,
                       "--mets"]
        return self.start(command, self.log(name)), out

    def finish(self, jobs):
        """The results of [(job, file)]; kills all if one fails."""
        if self.arguments.dry_run:
            return []
        try:
            while not all([job.done() for job, _ in jobs]):
                if time.monotonic() > self.deadline:
                    raise Failed("not done in time\n" + "\n".join(
                        f"{job.log.name}: {tail(job.log, 3)}"
                        for job, _ in jobs))
                time.sleep(0.02)
            return [json.loads(out.read_text("utf-8")) for _, out in jobs]
        finally:
            for job, _ in jobs:
                job.kill()


def brief(result):
    """What is kept of a training's result."""
    kept = {name: result[name] for name in (
        "seconds", "losses", "sha256", "peak_bytes", "persistent_bytes")}
    kept["step_seconds"] = [round(s, 4) for s in result["step_seconds"]]
    kept["mets"] = result.get("mets")
    kept["mets_steps"] = result.get("mets_steps")
    return kept


def pair_figures(lab, results, alone_seconds, stock=None):
    """Figures of trainings that ran at once.

    `alone_seconds`: their sum; `stock`: their results, if not those of alone.
    """
    stock = stock or [lab.alone[seed] for seed in SEEDS if seed in lab.alone]
    seconds = (max(r["end"] for r in results) -
               min(r["begin"] for r in results))
    figures = {"seconds": seconds, "jobs": [brief(r) for r in results]}
    if alone_seconds:
        figures["alone_seconds"] = alone_seconds
        figures["ratio"] = seconds / alone_seconds
    if len(stock) == len(results):
        figures["identical"] = [
            r["losses"] == s["losses"] and r["sha256"] == s["sha256"]
            for s, r in zip(stock, results)]
    if lab.alone_mets and stock == list(lab.alone.values()):
        figures["ratio_to_alone_mets"] = seconds / (
            len(results) * lab.alone_mets["seconds"])
    for name in ("evicted_bytes_total", "restored_bytes_total"):
        figures[name] = sum(r["mets"][name] for r in results)
    return figures


def start_pair(lab, name, daemon, more=()):
    meet = lab.arguments.out / f"{name}-meet"
    if not lab.arguments.dry_run:
        meet.mkdir(exist_ok=True)
        for old in meet.iterdir():
            old.unlink()
    return [lab.train(f"{name}-{seed}", seed, daemon,
                      more=["--meet", meet, "--parties", len(SEEDS), *more])
            for seed in SEEDS]


def alone_sum(lab):
    return sum(result["seconds"] for result in lab.alone.values()) if (
        len(lab.alone) == len(SEEDS)) else None


def alone(lab):
    for seed in SEEDS:
        for result in lab.finish([lab.train(f"alone-{seed}", seed)]):
            lab.alone[seed] = result
    return {"jobs": [brief(result) for result in lab.alone.values()]}


def alone_mets(lab):
    with Daemon(lab, "alone_mets", lab.arguments.pool) as daemon:
        for result in lab.finish([lab.train("alone_mets-0", SEEDS[0], daemon)]):
            lab.alone_mets = result
        jobs = daemon.status().get("jobs", [])
    if lab.alone_mets is None:
        return {}
    figures = brief(lab.alone_mets)
    lab.resident = jobs[0]["peak_resident_bytes"]
    figures["peak_resident_bytes"] = lab.resident
    if SEEDS[0] in lab.alone:
        stock = lab.alone[SEEDS[0]]
        figures["ratio"] = lab.alone_mets["seconds"] / stock["seconds"]
        figures["identical"] = [stock["losses"] == figures["losses"] and
                                stock["sha256"] == figures["sha256"]]
    return figures


def run_pair(lab, name, pool, alone_seconds, more=("--meet-again",),
             stock=None):
    with Daemon(lab, name, pool) as daemon:
        results = lab.finish(start_pair(lab, name, daemon, more))
    return pair_figures(lab, results, alone_seconds, stock) if results else {}


def pair(lab):
    return run_pair(lab, "pair", lab.arguments.pool, alone_sum(lab))


def pair_input(lab):
    """Input work takes as long for the pair as for the one alone."""
    part = lab.arguments.input_work
    seconds, alone_seconds = 0.0, None
    results = lab.finish([lab.train("pair_input-alone", SEEDS[0],
                                    more=["--input-work", part])])
    for result in results:
        seconds = result["input_seconds"]
        alone_seconds = len(SEEDS) * result["seconds"]
    figures = run_pair(lab, "pair_input", lab.arguments.pool, alone_seconds,
                       ["--meet-again", "--input-seconds", seconds])
    # Alone with METS was measured without input work.
    figures.pop("ratio_to_alone_mets", None)
    return dict(figures, input_work=part, input_seconds=seconds)


class Killer(threading.Thread):
    """Starts a third training again and again, and kills it as it computes."""

    def __init__(self, lab, daemon):
        super().__init__()
        self._lab, self._daemon = lab, daemon
        self._random = random.Random(0)
        self.stop = threading.Event()
        self.kills = 0
        self.failed = False

    def run(self):
        while not self.stop.is_set():
            job, _ = self._lab.train(
                f"pair_kill-third-{self.kills}", 2, self._daemon,
                batch=self._lab.arguments.third_batch, steps=1_000_000,
                more=["--warmup", 1],
                priority=self._lab.arguments.third_priority)
            while (job.process.poll() is None and "step " not in tail(job.log)
                   and not self.stop.wait(0.05)):
                pass
            self.stop.wait(self._random.uniform(0.05, 1.5))
            computed = job.process.poll() is None and "step " in tail(job.log)
            done = self.stop.is_set()
            job.kill()
            if done:
                break
            if not computed:
                self.failed = True  # By itself: not started again.
                break
            self.kills += 1


def pair_kill(lab):
    with Daemon(lab, "pair_kill", lab.arguments.pool) as daemon:
        if lab.arguments.dry_run:
            lab.train("pair_kill-third-0", 2, daemon,
                      batch=lab.arguments.third_batch, steps=1_000_000)
            start_pair(lab, "pair_kill", daemon)
            return {}
        killer = Killer(lab, daemon)
        jobs = start_pair(lab, "pair_kill", daemon, ["--meet-again"])
        killer.start()
        try:
            results = lab.finish(jobs)
        finally:
            killer.stop.set()
            killer.join()
    figures = pair_figures(lab, results, alone_sum(lab))
    return dict(figures, kills=killer.kills, third_failed=killer.failed)


def pair_cut(lab):
    """The pool has room for one training and half of what the other keeps."""
    ballast = lab.arguments.ballast
    more = ["--ballast", ballast]
    stock = [result for seed in SEEDS for result in lab.finish(
        [lab.train(f"pair_cut-alone-{seed}", seed, more=more)])]
    pool = parse_size(lab.arguments.cut_pool)
    if lab.resident:
        pool = lab.resident + int(1.5 * ballast * GIB)
        pool = -(-pool // CHUNK) * CHUNK
    figures = run_pair(lab, "pair_cut", pool,
                       sum(result["seconds"] for result in stock), more, stock)
    return dict(figures, pool_bytes=pool, ballast_gib=ballast)


def save(lab, about):
    path = lab.arguments.out / "torch_turns.json"
    path.write_text(json.dumps(dict(about, figures=lab.figures), indent=2) +
                    "\n", encoding="utf-8")


def report(name, figures):
    said = {key: round(value, 3) if isinstance(value, float) else value
            for key, value in figures.items() if key not in ("jobs", "mets")
            and not (isinstance(value, (list, dict)) and key != "identical")}
    print(f"{name}: {said}", flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=pathlib.Path,
                        default=ROOT / "build" / "bundle")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default=",".join(EXPERIMENTS))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--pool", default="64GiB")
    parser.add_argument("--cut-pool", default="52GiB",
                        help="pair_cut's, if alone_mets has not run")
    parser.add_argument("--swap-space", default="16GiB")
    parser.add_argument("--batch", type=int, default=1200)
    parser.add_argument("--ballast", type=float, default=4, metavar="GIB",
                        help="pair_cut's parameters beside the model's")
    parser.add_argument("--third-batch", type=int, default=128)
    parser.add_argument("--third-priority", type=int, default=0)
    parser.add_argument("--dtype", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--input-work", type=float, default=0.6)
    parser.add_argument("--limit", type=float, default=75,
                        help="seconds for one experiment")
    parser.add_argument("--budget", type=float, default=300,
                        help="seconds for all")
    parser.add_argument("--quick", action="store_true",
                        help="small batches in a small pool, few steps")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--train", default=HERE / "train.py")
    parser.add_argument("--commit", default="", help="where there is no git")
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.batch, arguments.third_batch, arguments.steps = 64, 16, 6
        arguments.pool, arguments.cut_pool = "6GiB", "4.5GiB"
        arguments.ballast = 0.5
        arguments.swap_space = "4GiB"
    unknown = set(arguments.only.split(",")) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"--only: no experiment {', '.join(sorted(unknown))}")
    arguments.out = arguments.out.resolve()
    arguments.pool = parse_size(arguments.pool)
    return arguments


def main():
    arguments = parse()
    lab = Lab(arguments)
    end = time.monotonic() + arguments.budget
    about = lab_about("figures/gpu/torch_turns/measure.py", arguments.commit,
                      None if arguments.dry_run else arguments.python)
    if not arguments.dry_run:
        arguments.out.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in EXPERIMENTS:
        if name not in arguments.only.split(","):
            continue
        print(f"== {name}", flush=True)
        start = time.monotonic()
        lab.deadline = min(start + arguments.limit, end)
        try:
            lab.figures[name] = globals()[name](lab)
        except (Failed, OSError, ValueError, KeyError) as error:
            lab.figures[name] = {"error": f"{type(error).__name__}: {error}"}
            failed = True
            print(f"{name} FAILED: {error}", flush=True)
        if arguments.dry_run:
            continue
        lab.figures[name]["took_seconds"] = time.monotonic() - start
        report(name, lab.figures[name])
        save(lab, about)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
