"""Allocators side by side on a GPU: recorded allocations, replayed on METS's
client, cudaMallocAsync, RMM's pool, PyTorch's caching allocator and TensorFlow's
BFC (on reserved addresses, not on the GPU).

    measure.py --bundle FOLDER --out FOLDER

The bundle is one of `deploy/bundle --compare`. PyTorch's program is compiled
here, with g++, for the PyTorch of this Python. tests/benchmarks/compare says what
the programs measure.

The second FOLDER gets ALLOCATOR.json (google-benchmark's) and compare.json. An
allocator that fails leaves its error there, and the others go on.
"""

import argparse
import concurrent.futures
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(ROOT / "figures")]
from calls import TRACES, calls  # noqa: E402
from lab import Daemon, Failed, Job, about  # noqa: E402

ALLOCATORS = ("mets", "cuda_async", "rmm", "torch", "bfc")
MOST_ROUNDS = 5
ROOM = 8 << 30  # For METS where there is to be room for everything.
CHUNK = 2 << 20  # Pools are multiples of it.
# Of what lives at most: the pools that are tried.
PERCENT = (*range(100, 130), *range(130, 201, 5))
ERRORS = (Failed, OSError, ValueError, KeyError, subprocess.SubprocessError)


def run(command, seconds, **options):
    try:
        return subprocess.run(command, capture_output=True, text=True,
                              check=False, timeout=seconds, **options)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{pathlib.Path(command[0]).name} was not done within "
                     f"{seconds:.0f} s") from error


class Lab:
    """What lab.Daemon asks for, and the programs."""

    swap = 0

    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder  # Of what is not kept.
        self.bundle = arguments.bundle.resolve()
        self.bin = self.bundle / "bin"
        self.compare = self.bundle / "compare"

    def log(self, name):
        return self.folder / f"{name}.log"

    def start(self, command, log, env=None):
        return Job([str(word) for word in command], log, env)

    def metsd(self, name, pool):
        return Daemon(self, name, pool, ["--status-address", "off"])

    def replay(self, allocator, *words, run_dir=""):
        """What a program prints, or None where the trace does not fit."""
        program = self.compare / f"compare_{allocator}"
        if allocator == "torch":
            program = self.folder / program.name
        done = run([program, *map(str, words)], self.arguments.limit,
                   env=dict(os.environ, METS_RUN_DIR=run_dir))
        if done.returncode not in (0, 1):
            raise Failed(f"exit status {done.returncode}: "
                         f"{done.stderr[-2000:]}")
        return done.stdout if done.returncode == 0 else None


def compile_torch(lab):
    """compare_torch, for this Python's PyTorch. Gives PyTorch's version."""
    found = importlib.util.find_spec("torch")
    if found is None:
        raise Failed(f"{sys.executable} has no PyTorch")
    torch = pathlib.Path(found.origin).parent
    toolkit = pathlib.Path("/usr/local/cuda")
    if shutil.which("nvcc"):
        toolkit = pathlib.Path(shutil.which("nvcc")).resolve().parents[1]
    includes = [ROOT, torch / "include", toolkit / "include",
                torch.parent / "nvidia/cu13/include"]
    libraries = [torch / "lib", lab.bundle / "lib"]
    done = run(
        ["g++", "-std=c++17", "-O2", "-w", *(f"-I{path}" for path in includes),
         ROOT / "tests/benchmarks/compare/torch.cc",
         lab.compare / "libcompare_replay.a",
         *lab.bundle.glob("lib/libbenchmark.so*"), torch / "lib/libc10.so",
         torch / "lib/libc10_cuda.so", "-pthread",
         "-Wl,--allow-shlib-undefined",  # CUDA's runtime, which c10 brings.
         *(f"-Wl,-rpath,{path}" for path in libraries),
         "-o", lab.folder / "compare_torch"],
        2 * lab.arguments.limit)
    if done.returncode != 0:
        raise Failed(f"g++: {done.stderr[-2000:]}")
    return importlib.metadata.version("torch")


class Comparison:
    def __init__(self, lab, allocators, until):
        self._lab = lab
        self._until = until
        self.allocators = allocators
        self.errors = {}
        self.benchmarks = {}  # google-benchmark's JSON, by allocator.
        self.pools = {}  # By (trace, allocator): smallest, most held there.
        self.paths, self.live = {}, {}
        for name in TRACES:
            text, self.live[name] = calls(name)
            self.paths[name] = lab.folder / f"{name}.calls"
            self.paths[name].write_text(text, encoding="utf-8")

    @contextlib.contextmanager
    def attempt(self, what):
        """What fails in it leaves its error, under the name `what`."""
        try:
            yield
        except ERRORS as error:
            self.errors[what] = f"{type(error).__name__}: {error}"
            print(f"{what} FAILED: {error}", flush=True)

    def able(self):
        """The allocators that have done something, or have not failed yet."""
        failed = {what.split(",")[0] for what in self.errors}
        return [name for name in self.allocators
                if name in self.benchmarks or name not in failed]

    def time_round(self, run_dir):
        """All traces, each in a process of its own. The allocators take turns,
        so that what else the machine does for a while meets all alike."""
        out = self._lab.folder / "benchmark.json"
        for path in self.paths.values():
            for allocator in self.able():
                with self.attempt(f"{allocator}, {path.stem}"):
                    self._check_time()
                    if self._lab.replay(
                            allocator, f"--benchmark_out={out}",
                            "--benchmark_min_time=0.05", path,
                            run_dir=run_dir) is None:
                        raise Failed(f"no room for {path.stem}")
                    self._add(allocator, json.loads(out.read_text("utf-8")))

    def _check_time(self):
        if time.monotonic() > self._until:
            raise Failed("no time is left")

    def _add(self, allocator, said):
        if allocator in self.benchmarks:
            self.benchmarks[allocator]["benchmarks"] += said["benchmarks"]
        else:
            self.benchmarks[allocator] = said

    def find_pools(self):
        """The smallest pool for each trace; time plays no part. METS, which
        takes longest, comes last."""
        pairs = [(trace, allocator) for allocator in reversed(self.able())
                 for trace in TRACES]
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            found = [threads.submit(self._find_pool, *pair) for pair in pairs]
        for (trace, allocator), future in zip(pairs, found):
            with self.attempt(f"{allocator}, pool of {trace}"):
                self.pools[trace, allocator] = future.result()

    def _find_pool(self, trace, allocator):
        """The first pool in which the trace fits, and the most held there.
        METS's pool is metsd's, so that each needs one of its own."""
        sizes = sorted({-(-self.live[trace] * percent // 100 // CHUNK) * CHUNK
                        for percent in PERCENT})
        if allocator == "mets":
            for size in sizes:
                self._check_time()
                name = f"{trace}-{size}"
                with self._lab.metsd(name, size) as metsd:
                    said = self._lab.replay(allocator, "--fits", size,
                                            self.paths[trace],
                                            run_dir=metsd.run_dir)
                if said:
                    break
        else:
            self._check_time()
            said = self._lab.replay(allocator, "--fits", *sizes,
                                    self.paths[trace])
        if not said:
            raise Failed(f"{trace} does not fit in {PERCENT[-1]} %")
        return tuple(map(int, said.split()))


def least_times(said):
    """{(trace, threads): (least nanoseconds of a call, most held)}; with several
    threads a call is one of one thread."""
    found = {}
    for row in said["benchmarks"]:
        key = row["run_name"].split("/")[0], row["threads"]
        took = 1e9 * row["threads"] / row["items_per_second"]
        if key not in found or took < found[key][0]:
            found[key] = took, row["held_bytes"]
    return found


def figures(comparison):
    """By allocator and trace, and geometric means: nanoseconds a call, the most
    held and the smallest pool ÷ what lives at most."""
    result = {"live_bytes": comparison.live}
    for allocator, said in comparison.benchmarks.items():
        times = least_times(said)
        rows = {}
        for trace, live in comparison.live.items():
            row = rows[trace] = {}
            for threads in (1, 2):
                if (trace, threads) in times:
                    row[f"ns_{threads}"], held = times[trace, threads]
                    row["held"] = held / live
            if (trace, allocator) in comparison.pools:
                pool, held = comparison.pools[trace, allocator]
                row["pool"], row["held_in_pool"] = pool / live, held / live
        rows["mean"] = {
            key: statistics.geometric_mean(row[key] for row in rows.values())
            for key in rows[TRACES[0]]
            if all(key in row for row in rows.values())}
        result[allocator] = rows
    return result


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default=",".join(ALLOCATORS))
    parser.add_argument("--device", default="cuda:0", help="METS's")
    parser.add_argument("--seconds", type=float, default=130,
                        help="no program starts later, and no round that "
                        "would end later")
    parser.add_argument("--limit", type=float, default=30,
                        help="seconds for one program")
    parser.add_argument("--commit", default="", help="where there is no git")
    arguments = parser.parse_args()
    unknown = set(arguments.only.split(",")) - set(ALLOCATORS)
    if unknown:
        parser.error(f"--only: no allocator {', '.join(sorted(unknown))}")
    return arguments


def write(arguments, report, comparison):
    for allocator, said in comparison.benchmarks.items():
        (arguments.out / f"{allocator}.json").write_text(
            json.dumps(said, indent=1) + "\n", encoding="utf-8")
    report["figures"] = figures(comparison)
    report["errors"] = comparison.errors
    (arguments.out / "compare.json").write_text(
        json.dumps(report, indent=1) + "\n", encoding="utf-8")


def measure(lab, report):
    begin = time.monotonic()
    comparison = Comparison(lab, lab.arguments.only.split(","),
                            begin + lab.arguments.seconds)
    if "torch" in comparison.allocators:
        with comparison.attempt("torch"):
            report["device"] += f"; PyTorch {compile_torch(lab)}"
    run_dir = ""
    with contextlib.ExitStack() as stack:
        if "mets" in comparison.allocators:
            with comparison.attempt("mets"):
                run_dir = stack.enter_context(lab.metsd("mets", ROOM)).run_dir
        for number in range(MOST_ROUNDS):
            before = time.monotonic()
            comparison.time_round(run_dir)
            report["rounds"] = number + 1
            took = time.monotonic() - before
            print(f"round {number}: {took:.1f} s", flush=True)
            write(lab.arguments, report, comparison)
            if number == 0:
                comparison.find_pools()
                write(lab.arguments, report, comparison)
                print(f"pools: {time.monotonic() - before - took:.1f} s",
                      flush=True)
            if time.monotonic() - begin + took > lab.arguments.seconds:
                break
    return comparison


def main():
    arguments = parse()
    arguments.out.mkdir(parents=True, exist_ok=True)
    report = about("figures/gpu/compare/measure.py", arguments.commit)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="compare-"))
    try:
        comparison = measure(Lab(arguments, folder), report)
    finally:
        shutil.rmtree(folder)
    for allocator in comparison.benchmarks:
        print(allocator, report["figures"][allocator].get("mean"))
    sys.exit(1 if comparison.errors else 0)


if __name__ == "__main__":
    main()
