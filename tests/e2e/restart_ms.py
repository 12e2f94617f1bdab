"""How long a restart takes under sessions with many buffers: kills metsd and
starts it again with its descriptors kept, and prints, from exec, when it served,
when a new process had memory, and when all sessions were back.

    python3 tests/e2e/restart_ms.py --device host:4GiB --sessions 8 \\
        --buffers 10000 --mib 400 --restarts 3
"""

import argparse
import os
import subprocess
import time

import harness
import scrape
import service_store

HOG = harness.BIN / "mets_hog"


class Daemon(service_store.Daemon):
    def __init__(self, device, swap):
        super().__init__(0, swap, "--metrics-address", "127.0.0.1:0",
                         "--status-address", "off")
        self._args[1] = device

    def spawn(self):
        """As start, without waiting for it."""
        self._out = open(f"{self.run_dir}/metsd.log", "w")
        self.process = self._spawn(
            [harness.BIN / "metsd", "--run-dir", self.run_dir, *self._args],
            self._out)

    def sessions(self, state):
        return scrape.scrape(self.metrics_address()).value("mets_sessions",
                                                           state=state)


def probe(daemon):
    """A new process that gets memory; False when it cannot yet."""
    return subprocess.run(
        [HOG, "--mib", "1", "--buffers", "1", "--rounds", "0"],
        env=dict(os.environ, METS_RUN_DIR=daemon.run_dir, METS_JOB="probe"),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def until(condition, begin, seconds=60):
    """Milliseconds since `begin` when it was true."""
    harness.wait_for(condition, seconds, "it is true")
    return (time.monotonic() - begin) * 1000


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="host:4GiB")
    options.add_argument("--swap", type=int, default=1 << 30)
    options.add_argument("--sessions", type=int, default=8)
    options.add_argument("--buffers", type=int, default=10000)
    options.add_argument("--mib", type=int, default=400, help="of each session")
    options.add_argument("--restarts", type=int, default=3)
    options = options.parse_args()
    with Daemon(options.device, options.swap) as daemon:
        jobs = [daemon.run(f"job{i}", [HOG, "--mib", options.mib, "--buffers",
                                       options.buffers, "--pause"])
                for i in range(options.sessions)]
        for job in jobs:
            harness.wait_for(lambda: "filled" in harness.text_of(job)
                             or job.poll() is not None, 600, "it is filled")
        usual = time.monotonic()
        probe(daemon)
        usual = (time.monotonic() - usual) * 1000
        print(f"{len(daemon.store.names())} descriptors; without a restart a "
              f"new process has memory after {usual:.0f} ms")
        for _ in range(options.restarts):
            daemon.kill()
            daemon.store.settle()
            begin = time.monotonic()
            daemon.spawn()
            served = until(lambda: "ready" in daemon.log(), begin)
            granted = until(lambda: probe(daemon), begin)
            back = until(lambda: daemon.sessions("connected")
                         >= options.sessions
                         and daemon.sessions("returning") == 0, begin)
            device = daemon.device()
            print(f"served after {served:.0f} ms, first grant {granted:.0f} ms, "
                  f"all back {back:.0f} ms; kept: "
                  f"{'the pool is kept' in daemon.log()}, orphan_bytes "
                  f"{device['orphan_bytes']}", flush=True)
        for job in jobs:
            if job.poll() is not None:
                raise AssertionError(harness.text_of(job))
            job.kill()


if __name__ == "__main__":
    main()
