"""Two Keras trainings share one host device through metsd.

Usage: quickstart.py BUILD_DIR   (deploy/quickstart calls it after the set-up)

1. Each training alone, in TensorFlow as it comes: time, loss, weights.
2. Each for a few steps in a large pool: the most memory it uses.
3. Both at once in a pool smaller than the larger one's need.

Writes BUILD_DIR/quickstart.json; exits with 0 only if everything held.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / "tests" / "e2e" / "models.py"
MIB = 1 << 20
CHUNK = 64 << 10  # A pool is a multiple of the smallest chunk.
STEPS = {"cnn": 24, "mlp": 60}
PROBE_STEPS = 8  # Later steps repeat what these need.


def mib(n):
    return f"{n / MIB:.0f} MiB"


class Daemon:
    """metsd in a run directory of its own; stops it on exit."""

    def __init__(self, bin_dir, pool, swap):
        self._bin = bin_dir
        self._pool, self._swap = pool, swap
        self.peak_resident = 0
        self._stop = threading.Event()

    def __enter__(self):
        self._dir = tempfile.TemporaryDirectory(prefix="mets-")
        self.run_dir = self._dir.name
        self._log = open(os.path.join(self.run_dir, "metsd.log"), "w+")
        self._process = subprocess.Popen(
            [self._bin / "metsd", "--run-dir", self.run_dir,
             "--device", f"host:{self._pool}", "--swap-space", str(self._swap),
             "--policy", "lru"],
            stderr=self._log, stdout=self._log)
        self._wait_until_ready()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._watcher.join()
        self._process.terminate()
        self._process.wait(timeout=20)
        self._log.close()
        self._dir.cleanup()

    def status(self):
        text = subprocess.run(
            [self._bin / "metsctl", "--run-dir", self.run_dir, "status", "--json"],
            check=True, stdout=subprocess.PIPE, timeout=20).stdout
        return json.loads(text)

    def _wait_until_ready(self):
        for _ in range(600):
            self._log.seek(0)
            log = self._log.read()
            if "ready" in log:
                return
            if self._process.poll() is not None:
                sys.exit(f"metsd did not start:\n{log}")
            time.sleep(0.05)
        sys.exit("metsd was not ready after 30 s")

    def _watch(self):
        while not self._stop.wait(0.25):
            device = self.status()["devices"][0]
            used = device["pool_bytes"] - device["free_bytes"]
            self.peak_resident = max(self.peak_resident, used)


def start(model, steps, out, daemon=None, bin_dir=None):
    """Starts a training whose lines appear here behind its name."""
    command = [sys.executable, MODELS, model, "--steps", str(steps), "--every", "2",
               "--out", out]
    env = dict(os.environ, PYTHONUNBUFFERED="1")
    if daemon:
        command = [bin_dir / "metsctl", "--run-dir", daemon.run_dir, "run",
                   "--job", model, "--", *command]
    else:
        env["METS_DISABLE"] = "1"
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    process.tail = []

    def show():
        for line in process.stdout:
            process.tail = (process.tail + [line])[-40:]
            if line.startswith(("step", "mets")):
                print(f"  {model:4} {line}", end="", flush=True)

    process.reader = threading.Thread(target=show)
    process.reader.start()
    return process


def finish(model, process, out):
    code = process.wait()
    process.reader.join()
    if code:
        sys.exit(f"the {model} training ended with {code}:\n{''.join(process.tail)}")
    return json.loads(pathlib.Path(out).read_text())


def run(models, steps, scratch, daemon=None, bin_dir=None):
    """Runs the trainings at once; returns their results by model."""
    running = {}
    for model in models:
        out = os.path.join(scratch, f"{model}.json")
        running[model] = (start(model, steps[model], out, daemon, bin_dir), out)
    return {m: finish(m, process, out) for m, (process, out) in running.items()}


def report(result, path):
    print()
    print(f"pool {mib(result['device_pool_bytes'])}, at most "
          f"{mib(result['peak_resident_bytes'])} of it in use")
    head = ("job", "needs alone", "alone", "shared", "evicted", "restored",
            "loss", "identical")
    rows = [(j["name"], mib(j["peak_live_bytes"]), f"{j['seconds_alone']:.1f} s",
             f"{j['seconds_shared']:.1f} s", mib(j["evicted_bytes"]),
             mib(j["restored_bytes"]), f"{j['final_loss_shared']:.6f}",
             "yes" if j["identical"] else "NO") for j in result["jobs"]]
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(cell.rjust(w) for cell, w in zip(row, widths)))
    for problem in result["problems"]:
        print(f"PROBLEM: {problem}")
    print("ok" if result["ok"] else "FAILED", f"(details: {path})")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    bin_dir = build / "bin"
    models = list(STEPS)
    with tempfile.TemporaryDirectory(prefix="mets-quickstart-") as scratch:
        print("1/3 each training alone, in TensorFlow as it comes", flush=True)
        alone = {m: run([m], STEPS, scratch)[m] for m in models}

        print("2/3 what each needs", flush=True)
        with Daemon(bin_dir, 4 << 30, 1 << 30) as daemon:
            few = dict.fromkeys(models, PROBE_STEPS)
            need = {m: run([m], few, scratch, daemon, bin_dir)[m]["mets"]
                    ["peak_live_bytes"] for m in models}
        pool = min(sum(need.values()) * 58 // 100, max(need.values()) * 95 // 100)
        pool = pool // CHUNK * CHUNK

        print(f"3/3 both at once: {' + '.join(mib(n) for n in need.values())} "
              f"in a pool of {mib(pool)}", flush=True)
        with Daemon(bin_dir, pool, 2 << 30) as daemon:
            shared = run(models, STEPS, scratch, daemon, bin_dir)
            peak = daemon.peak_resident

    jobs, problems = [], []
    for m in models:
        a, s = alone[m], shared[m]
        same = (a["final_loss_hex"] == s["final_loss_hex"]
                and a["weights_sha256"] == s["weights_sha256"])
        jobs.append({
            "name": m, "peak_live_bytes": need[m],
            "seconds_alone": a["seconds"], "seconds_shared": s["seconds"],
            "final_loss_alone": a["final_loss"],
            "final_loss_shared": s["final_loss"], "identical": same,
            "evicted_bytes": s["mets"]["evicted_bytes_total"],
            "restored_bytes": s["mets"]["restored_bytes_total"]})
        if not same:
            problems.append(f"{m}: results differ from running alone")
        if not s["mets"]["restored_bytes_total"]:
            problems.append(f"{m}: no byte of it was evicted and restored")
    if peak > pool:
        problems.append(f"{peak} bytes in use, more than the pool's {pool}")
    result = {"ok": not problems, "device_pool_bytes": pool,
              "peak_resident_bytes": peak, "jobs": jobs, "problems": problems}
    path = build / "quickstart.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    report(result, path)
    sys.exit(0 if result["ok"] else 1)


if __name__ == "__main__":
    main()
