"""Two trainings that each need nearly the whole pool take turns step by step."""

import json
import pathlib
import sys
import tempfile
import unittest

import harness

MIB = harness.MIB
POOL = 64 * MIB
# 95 % of the pool each, nearly all of it ephemeral.
NEEDS = ["--persistent-mib", 1, "--ephemeral-mib", 58, "--layers", 29]


def together(daemon, *options):
    """Runs two of them at once; what they say, and the device's counters."""
    command = [harness.BIN / "mets_stepper", *NEEDS, *options]
    jobs = [daemon.run(name, command) for name in "ab"]
    for job in jobs:
        harness.finish(job)
    results = [json.loads(harness.text_of(job).splitlines()[-1])
               for job in jobs]
    return results, daemon.device()


class Turns(unittest.TestCase):
    def measure(self, *options):
        with harness.Daemon(POOL) as daemon:
            results, device = together(daemon, *options)
        moved = sum(r["evicted_bytes"] + r["restored_bytes"] for r in results)
        seconds = max(r["seconds"] for r in results)
        print(f"{options}: {seconds:.2f} s, moved {moved / MIB:.0f} MiB, "
              f"turns {device['turns_total']}, "
              f"quanta {device['quanta_total']}", file=sys.stderr)
        return moved, seconds, device

    def test_turns_move_nearly_nothing(self):
        steps = 40
        common = ["--steps", steps, "--compute-us", 500]
        with_hints, _, device = self.measure("--hints", *common)
        without, _, _ = self.measure(*common)
        # What both hold when the second one's need becomes known moves once.
        self.assertLess(with_hints, 4 * POOL)
        self.assertGreater(device["turns_total"], steps)
        # The longer the quanta, the less.
        self.assertLess(with_hints * 2, without)

    def test_half_idle_trainings_interleave(self):
        # About as much input work as computing.
        options = ["--hints", "--steps", 30, "--compute-us", 1000,
                   "--input-ms", 80]
        moved, _, device = self.measure(*options)
        self.assertLess(moved, 12 * POOL)
        self.assertGreater(device["turns_total"], 20)


class TurnsOnTwoDevices(unittest.TestCase):
    """Trainings of two processes, one on each of two devices, that wait for each
    other within every step."""

    STEPS = 40
    DEVICES = ["host0", "host1"]
    LARGE = ["--persistent-mib", 40, "--ephemeral-mib", 16, "--layers", 8]

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="mets-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.daemon = harness.Daemon(POOL, 2 << 30,
                                     "--device", f"host:{POOL}")

    def start(self, job, *options):
        meeting = pathlib.Path(self.directory, job)
        return [self.daemon.run(job, [
            harness.BIN / "mets_stepper", *options, "--steps", self.STEPS,
            "--compute-us", 500, "--device", device, "--meeting", meeting])
            for device in self.DEVICES]

    def finish(self, processes):
        """Seconds, and bytes that have moved."""
        try:
            for process in processes:
                harness.finish(process, timeout=60)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        results = [json.loads(harness.text_of(process).splitlines()[-1])
                   for process in processes]
        return (max(r["seconds"] for r in results),
                sum(r["evicted_bytes"] + r["restored_bytes"] for r in results))

    def check(self, *options):
        """Both at once take turns on both devices; bytes that have moved."""
        with self.daemon as daemon:
            alone, _ = self.finish(self.start("alone", *options))
            both, moved = self.finish(self.start("a", *options)
                                      + self.start("b", *options))
            counters = daemon.status()["devices"]
        print(f"{self.id()}: {both:.2f} s, one alone {alone:.2f} s, moved "
              f"{moved / MIB:.0f} MiB, turns "
              f"{[d['turns_total'] for d in counters]}, "
              f"quanta {[d['quanta_total'] for d in counters]}",
              file=sys.stderr)
        for device in counters:
            self.assertGreater(
                device["turns_total"] + device["quanta_total"], 1)
        return moved

    def test_by_steps(self):
        self.assertLess(self.check(*NEEDS, "--hints"), 12 * POOL)

    def test_by_quanta(self):
        self.check(*self.LARGE, "--hints")

    def test_while_nobody_knows_their_steps(self):
        # Each waits for the other with pinned what the other job needs.
        self.check(*self.LARGE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
