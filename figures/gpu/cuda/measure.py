"""Tests of CUDA devices, and how fast METS is on one.

    measure.py --bundle build/bundle --out FOLDER [--only bench,kill]

Experiments, by the names that --only takes:

    tests      the bundle's tests of the drivers, and of metsd with libmets
    bench      `metsctl bench`: hand-overs of --move, allocations
    neighbour  what a stock PyTorch training beside METS loses while others'
               bytes move, and while none do (needs PyTorch)
    turns      what a turn costs two jobs that use the same --turn-gib in turn,
               100 ms each (needs PyTorch)
    kill       how soon the memory of a client that is killed is free
    stale      bytes of one user in another's fresh memory (needs root)
    waste      memory behind buffers : what was asked for, at the peak of each
               shared trace of allocations
    restart    metsd is killed under eight jobs of 10,000 tensors each and
               starts again, its descriptors kept (needs PyTorch)
    both       hand-overs of --move on two GPUs at once, beside plain copies on
               both (needs two GPUs)
    together   two processes that train together, each on its own GPU, with METS
               and without (needs two GPUs and PyTorch)

FOLDER gets cuda.json, after every experiment, and the logs. An experiment that
fails leaves its error there, and the others go on.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent))
from lab import Daemon, Failed, Job, about, parse_size, tail  # noqa: E402

EXPERIMENTS = ("tests", "bench", "neighbour", "turns", "kill", "stale",
               "waste", "restart")
ON_TWO_GPUS = ("both", "together")
MIB = 1 << 20
GIB = 1 << 30
PIECE = 128 * MIB
PROBE = 512 * MIB  # Plain copies of `both`: more than processors cache.
TURN_SECONDS = 0.1
USERS = (61001, 61002)  # Of `stale`: no such accounts are needed.
JOBS = 8  # Of `restart`.
# `metsctl bench`'s names, and ours.
BENCH = {
    "hand_over_ratio": "handover_duplex_ratio",
    "hand_over_oneway_ratio": "handover_oneway_ratio",
    "hand_over_gbps": "handover_duplex_gbps",
    "hand_over_first_gbps": "handover_first_gbps",
    "hand_over_in_gbps": "handover_in_gbps",
    "hand_over_out_gbps": "handover_out_gbps",
    "alloc_native_pool_us": "cuda_malloc_async_us",
    "alloc_native_us": "cuda_malloc_us",
    "fresh_ms": "fresh_512mib_ms",
}


class Worker:
    """mets-bench-worker, a program that uses a device through libmets."""

    def __init__(self, lab, daemon, name, device=0, probe=16 * MIB):
        ours, theirs = socket.socketpair()
        with theirs, open(lab.log(name), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [lab.bin / "mets-bench-worker"], stdin=theirs, stdout=log,
                stderr=log, env=dict(os.environ, METS_JOB=name,
                                     METS_RUN_DIR=daemon.run_dir))
        self._lines = ours.makefile("rw", encoding="utf-8")
        self.ask(
            f"open {daemon.status()['devices'][device]['id']} {probe}")

    def tell(self, command):
        self._lines.write(command + "\n")
        self._lines.flush()

    def answer(self):
        words = self._lines.readline().split(maxsplit=1)
        if len(words) < 2 or words[0] != "ok":
            raise Failed(f"mets-bench-worker: {' '.join(words) or 'has ended'}")
        return float(words[1])

    def ask(self, command):
        self.tell(command)
        return self.answer()

    def kill(self):
        self.process.kill()
        self.process.wait()


class Lab:
    def __init__(self, arguments):
        self.arguments = arguments
        self.bin = arguments.bundle.resolve() / "bin"
        self.swap = parse_size(arguments.swap_space)
        self.move = parse_size(arguments.move)

    def log(self, name):
        return self.arguments.out / f"{name}.log"

    def start(self, command, log, env=None):
        return Job([str(word) for word in command], log, env)

    @contextlib.contextmanager
    def workers(self, daemon, *names):
        workers = []
        try:
            for name in names:
                workers.append(Worker(self, daemon, name))
            yield workers
        finally:
            for worker in workers:
                worker.kill()


def pool_for(move):
    """A pool in which two jobs of (pool + move) / 2 move so much each way."""
    return move * 4 // 3


def tests(lab):
    """Names of the tests that passed; Failed names the others."""
    passed, failed = [], []
    for path in sorted((lab.bin.parent / "tests").glob("cuda_*_test")):
        job = lab.start([path], lab.log(path.name),
                        {"METS_TEST_METSD": str(lab.bin / "metsd")})
        code = job.process.wait(lab.arguments.limit)
        job.kill()
        (failed if code else passed).append(path.name)
    if failed or not passed:
        raise Failed(f"passed: {passed}; failed: {failed}\n" + "\n".join(
            tail(lab.log(name)) for name in failed))
    return {"tests_passed": passed}


def bench(lab):
    with Daemon(lab, "bench", pool_for(lab.move)) as daemon:
        done = subprocess.run(
            [lab.bin / "metsctl", "--run-dir", daemon.run_dir, "bench",
             "--json", "--move", str(lab.move)], capture_output=True, text=True,
            check=False, timeout=lab.arguments.limit)
    if done.returncode != 0:
        raise Failed(done.stderr)
    return {BENCH.get(name, name): value
            for name, value in json.loads(done.stdout)["figures"].items()}


class HandOvers(threading.Thread):
    """Two jobs that hand the device over again and again; notes when."""

    def __init__(self, first, second, move, stop):
        super().__init__()
        self._ends, self._ended = [first, second], stop
        self._move = move
        self.windows, self.gbps = [], []
        self.error = None

    def run(self):
        try:
            while not self._ended.is_set():
                time.sleep(1.5)  # Then the holder's quantum is over.
                begin = time.time()
                self._ends[0].tell("turn")
                self._ends[1].answer()
                self.windows.append((begin, time.time()))
                self.gbps.append(
                    2e-9 * self._move / (time.time() - begin))
                self._ends.reverse()
        except (Failed, OSError) as error:
            self.error = error


def step_ends(result):
    """When each step of train.py's result ended; its first step's beginning."""
    ends, now = [], result["begin"]
    for seconds in result["step_seconds"]:
        now += seconds
        ends.append(now)
    return ends


def compare_steps(result, windows):
    """Medians of steps while nothing moved, and while something did."""
    quiet, moving = [], []
    for end, seconds in zip(step_ends(result), result["step_seconds"]):
        begin = end - seconds
        if any(a <= begin and end <= b for a, b in windows):
            moving.append(seconds)
        elif all(end < a or b < begin for a, b in windows):
            quiet.append(seconds)
    if len(moving) < 10 or len(quiet) < 10:
        raise Failed(f"{len(moving)} steps while bytes moved, {len(quiet)} "
                     f"while none did: at least 10 of each are needed")
    return statistics.median(quiet), statistics.median(moving)


def train(lab, name, steps):
    out = lab.arguments.out / f"{name}.result"
    job = lab.start([lab.arguments.python,
                     HERE.parent / "torch_turns" / "train.py", "--batch", 192,
                     "--dtype", "bf16", "--steps", steps, "--out", out],
                    lab.log(name))
    return job, out


def neighbour(lab):
    """The training does not use METS; others' bytes move beside it."""
    hold = (pool_for(lab.move) + lab.move) // 2
    stop = threading.Event()
    with Daemon(lab, "neighbour", pool_for(lab.move)) as daemon, \
            lab.workers(daemon, "first", "second") as (first, second):
        first.ask(f"hold {hold} {PIECE}")
        second.tell(f"hold {hold} {PIECE}")
        movers = HandOvers(first, second, lab.move, stop)
        movers.start()
        job, out = train(lab, "neighbour-train", lab.arguments.steps)
        try:
            code = job.process.wait(lab.arguments.limit)
        finally:
            stop.set()
            job.kill()
            movers.join()
    if code or movers.error:
        raise Failed(f"{movers.error or ''} {tail(job.log)}")
    result = json.loads(out.read_text("utf-8"))
    quiet, moving = compare_steps(result, movers.windows[3:])
    return {"neighbour_loss_percent": 100 * (moving / quiet - 1),
            "neighbour_step_ms": 1e3 * quiet,
            "neighbour_moved_gbps": statistics.median(movers.gbps[3:])}


def turns(lab):
    """What passes between one's end and the other's beginning."""
    gib, count = lab.arguments.turn_gib, lab.arguments.turns
    jobs = []
    with Daemon(lab, "turns", (gib + 3) * GIB) as daemon:
        try:
            for number in range(2):
                log = open(lab.log(f"turns-{number}"), "w", encoding="utf-8")
                jobs.append(subprocess.Popen(
                    [lab.bin / "metsctl", "--run-dir", daemon.run_dir, "run",
                     "--job", f"turns-{number}", "--", lab.arguments.python,
                     HERE / "turn_user.py", str(number), str(count), str(gib),
                     str(TURN_SECONDS)], text=True, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=log))
            for job in jobs:
                if job.stdout.readline() != "ready\n":
                    raise Failed(tail(lab.log("turns-0")))
            for job in jobs:
                job.stdin.write("\n")
                job.stdin.flush()
            results = [json.loads(job.communicate()[0]) for job in jobs]
        finally:
            for job in jobs:
                job.kill()
    all_turns = sorted((*times, number) for number, result in enumerate(results)
                       for times in result["turns"])
    gaps = [1e3 * (later[0] - earlier[1])
            for earlier, later in zip(all_turns, all_turns[1:])
            if earlier[2] != later[2]]
    return {"turn_cost_ms": statistics.median(gaps),
            "turn_cost_all_ms": [round(gap, 3) for gap in sorted(gaps)],
            "turn_wrong_words": sum(r["wrong"] for r in results)}


def kill(lab):
    """Of five kills of a client that holds --move."""
    times = []
    with Daemon(lab, "kill", lab.move) as daemon:
        for i in range(5):
            with lab.workers(daemon, f"victim-{i}") as (victim,):
                victim.ask(f"hold {lab.move} {PIECE}")
                begin = time.monotonic()
                victim.process.kill()
                while daemon.status()["devices"][0]["resident_bytes"]:
                    if time.monotonic() - begin > 20:
                        raise Failed("not free within 20 s")
                times.append(1e3 * (time.monotonic() - begin))
    return {"kill_reclaim_ms": max(times), "kill_reclaim_all_ms": times}


def stale(lab):
    """Two users take all of a pool by turns; each counts, then fills."""
    place = pathlib.Path("/tmp/mets-stale")  # Readable for all.
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(lab.bin.parent, place)
    place.chmod(0o755)
    pool = 2 * GIB
    with Daemon(lab, "stale", pool, ["--socket-group", "root"]) as daemon:
        os.chmod(daemon.run_dir, 0o755)
        users = []
        for user in USERS:
            log = open(lab.log(f"stale-{user}"), "w", encoding="utf-8")
            users.append(subprocess.Popen(
                [lab.arguments.python, HERE / "stale_user.py",
                 str(1 + len(users))], text=True,
                user=user, group=0, cwd="/tmp", stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log,
                env=dict(os.environ, HOME="/tmp", METS_JOB=f"user-{user}",
                         METS_RUN_DIR=daemon.run_dir, METS_REQUIRED="1",
                         METS_LIBRARY_DIR=str(place / "lib"),
                         PYTHONPATH=str(place / "python"))))
        found = taken = own = 0
        try:
            deadline = time.monotonic() + lab.arguments.limit
            while taken < lab.arguments.buffers and (
                    time.monotonic() < deadline):
                for user in users:
                    user.stdin.write(f"{(pool - 256 * MIB) // (8 * MIB)}\n")
                    user.stdin.flush()
                    words = user.stdout.readline().split()
                    if len(words) != 3:
                        raise Failed(tail(lab.log(f"stale-{USERS[0]}")) +
                                     tail(lab.log(f"stale-{USERS[1]}")))
                    taken += int(words[0])
                    found += int(words[1])
                    own += int(words[2])
        finally:
            for user in users:
                user.kill()
                user.wait()
    return {"stale_bytes": found, "stale_buffers_of_8mib": taken,
            "stale_own_bytes": own}


def waste(lab):
    """A process for each trace, so that it begins with nothing."""
    ratios = {}
    with Daemon(lab, "waste", 16 * GIB) as daemon:
        for path in sorted(lab.arguments.traces.glob("singa-*.csv.xz")):
            done = subprocess.run(
                [lab.arguments.python, HERE / "replay.py",
                 lab.bin.parent / "lib" / "libmets.so", path],
                capture_output=True, text=True, check=False,
                timeout=lab.arguments.limit,
                env=dict(os.environ, METS_RUN_DIR=daemon.run_dir,
                         METS_JOB=path.name.split(".")[0]))
            if done.returncode != 0:
                raise Failed(f"{path.name}: {done.stderr}")
            ratios[path.name.split(".")[0]] = json.loads(done.stdout)
    worst = max(r["resident"] / r["live"] for r in ratios.values())
    return {"waste_percent": 100 * (worst - 1), "waste_traces": ratios}


def restart(lab):
    """Of three restarts. First grant: to a job that metsd knew, since exec."""
    os.environ["METS_BUILD_DIR"] = str(lab.bin.parent)
    sys.path.insert(0, str(ROOT / "tests" / "e2e"))
    import service_store

    count, size = lab.arguments.tensors, 768 << 10
    pool = JOBS * count * (size + (16 << 10)) + 2 * GIB
    users, times = [], []
    daemon = service_store.Daemon(0, GIB, "--status-address", "off")
    daemon._args[1] = f"{lab.arguments.device}:{pool}"
    with daemon, contextlib.ExitStack() as stack:
        for number in range(JOBS):
            log = stack.enter_context(
                open(lab.log(f"restart-{number}"), "w", encoding="utf-8"))
            user = subprocess.Popen(
                [lab.bin / "metsctl", "--run-dir", daemon.run_dir, "run",
                 "--job", f"restart-{number}", "--", lab.arguments.python,
                 HERE / "restart_user.py", str(number), str(count), str(size)],
                text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log)
            stack.callback(user.kill)
            users.append(user)
        for number, user in enumerate(users):
            if user.stdout.readline() != "ready\n":
                raise Failed(tail(lab.log(f"restart-{number}")))
        kept = daemon.status()["devices"][0]["resident_bytes"]
        with lab.workers(daemon, "restart-worker") as (worker,):
            worker.ask(f"hold {64 * MIB} {64 * MIB}")
            for _ in range(3):
                worker.ask("drop")
                daemon.kill()
                daemon.store.settle()
                worker.tell(f"hold {128 * MIB} {64 * MIB}")
                begin = time.monotonic()
                daemon.start()
                worker.answer()
                times.append(1e3 * (time.monotonic() - begin))
                if "the pool is kept" not in daemon.log():
                    raise Failed(daemon.log())
        wrong = 0
        for user in users:
            user.stdin.write("\n")
            user.stdin.flush()
        for number, user in enumerate(users):
            line = user.stdout.readline()
            if not line.strip().isdigit():
                raise Failed(tail(lab.log(f"restart-{number}")))
            wrong += int(line)
    return {"restart_ms": max(times), "restart_all_ms": times,
            "restart_kept_bytes": kept, "restart_wrong_words": wrong}


def two_devices(lab, name, pool):
    return Daemon(lab, name, pool,
                  ["--device", f"{lab.arguments.second_device}:{pool}"])


def both(lab):
    """Each GPU has two jobs whose memory exceeds its pool by --move."""
    move = lab.move
    pool = pool_for(move)
    copies = 32
    with two_devices(lab, "both", pool) as daemon, contextlib.ExitStack() as all_:
        pairs = []
        for device in range(2):
            pair = [Worker(lab, daemon, f"both-{device}-{job}", device, PROBE)
                    for job in range(2)]
            for worker in pair:
                all_.callback(worker.kill)
            pairs.append(pair)
        begin = time.monotonic()
        for first, second in pairs:
            first.tell(f"raw-out {copies}")
            second.tell(f"raw-in {copies}")
        for worker in [worker for pair in pairs for worker in pair]:
            worker.answer()
        raw = 4e-9 * copies * PROBE / (time.monotonic() - begin)
        for first, second in pairs:
            held = first.ask(f"hold {(pool + move) // 2} {PIECE}")
            second.tell(f"hold {(pool + move) // 2} {PIECE}")
        moved = 4 * (2 * held - pool)  # Both ways, on both.
        rates = []
        for _ in range(9):
            time.sleep(1.5)  # Then the holder's quantum is over.
            begin = time.monotonic()
            for first, _ in pairs:
                first.tell("turn")
            for _, second in pairs:
                second.answer()
            rates.append(1e-9 * moved / (time.monotonic() - begin))
            for pair in pairs:
                pair.reverse()
    gbps = statistics.median(rates[3:])
    return {"both_raw_gbps": raw, "both_handover_gbps": gbps,
            "both_handover_ratio": gbps / raw, "both_all_gbps": rates}


def together(lab):
    """Losses, parameters and times, with METS and without."""
    def trained(name, prefix, **env):
        jobs = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for rank in range(2):
            log = open(lab.log(f"{name}-{rank}"), "w", encoding="utf-8")
            jobs.append(subprocess.Popen(
                [*prefix, lab.arguments.python, HERE / "ddp_user.py", str(rank),
                 "40", str(port)], stdout=subprocess.PIPE, stderr=log,
                text=True, env=dict(os.environ, **env)))
        try:
            texts = [job.communicate(timeout=lab.arguments.limit)[0]
                     for job in jobs]
        finally:
            for job in jobs:
                job.kill()
        if any(job.returncode for job in jobs):
            raise Failed(tail(lab.log(f"{name}-0")) + tail(lab.log(f"{name}-1")))
        return [json.loads(text.split("\n")[-2]) for text in texts]

    python = {"PYTHONPATH": str(lab.bin.parent / "python")}
    plain = trained("together-plain", [], METS_DISABLE="1", **python)
    with two_devices(lab, "together", 20 * GIB) as daemon:
        with_mets = trained(
            "together-mets", [lab.bin / "metsctl", "--run-dir", daemon.run_dir,
                              "run", "--job", "together", "--"],
            METS_REQUIRED="1")
        peaks = [job["peak_resident_bytes"] for job in daemon.status()["jobs"]]
    same = all(a["losses"] == b["losses"] and a["digest"] == b["digest"]
               for a, b in zip(plain, with_mets))
    return {"together_identical": same,
            "together_ratio": with_mets[0]["step_ms"] / plain[0]["step_ms"],
            "together_step_ms": plain[0]["step_ms"],
            "together_peak_bytes": peaks}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=pathlib.Path,
                        default=ROOT / "build" / "bundle")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default=",".join(EXPERIMENTS))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--second-device", default="cuda:1")
    parser.add_argument("--tensors", type=int, default=10_000,
                        help="of each of the jobs of `restart`")
    parser.add_argument("--move", default="30GiB", help="each way")
    parser.add_argument("--swap-space", default="76GiB")
    parser.add_argument("--steps", type=int, default=400, help="neighbour's")
    parser.add_argument("--turns", type=int, default=60, help="of each job")
    parser.add_argument("--turn-gib", type=int, default=40)
    parser.add_argument("--buffers", type=int, default=10_000,
                        help="of 8 MiB that change users in `stale`")
    parser.add_argument("--traces", type=pathlib.Path,
                        default=ROOT / "figures" / "traces")
    parser.add_argument("--limit", type=float, default=90,
                        help="seconds for one experiment")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--commit", default="", help="where there is no git")
    arguments = parser.parse_args()
    unknown = set(arguments.only.split(",")) - {*EXPERIMENTS, *ON_TWO_GPUS}
    if unknown:
        parser.error(f"--only: no experiment {', '.join(sorted(unknown))}")
    arguments.out = arguments.out.resolve()
    return arguments


def main():
    arguments = parse()
    arguments.out.mkdir(parents=True, exist_ok=True)
    lab = Lab(arguments)
    report = about("figures/gpu/cuda/measure.py", arguments.commit,
                   arguments.python)
    report["figures"], report["errors"] = {}, {}
    for name in arguments.only.split(","):
        print(f"== {name}", flush=True)
        begin = time.monotonic()
        try:
            figures = globals()[name](lab)
            report["figures"].update(figures)
            print(f"{name}: {figures}", flush=True)
        except (Failed, OSError, ValueError, KeyError,
                subprocess.SubprocessError) as error:
            report["errors"][name] = f"{type(error).__name__}: {error}"
            print(f"{name} FAILED: {error}", flush=True)
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
        (arguments.out / "cuda.json").write_text(
            json.dumps(report, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if report["errors"] else 0)


if __name__ == "__main__":
    main()
