"""Two trainings that each need nearly the whole pool take turns step by step."""

import json
import sys
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
        self.assertLess(with_hints, 12 * POOL)
        self.assertGreater(device["turns_total"], steps)
        self.assertLess(with_hints * 4, without)

    def test_half_idle_trainings_interleave(self):
        # About as much input work as computing.
        options = ["--hints", "--steps", 30, "--compute-us", 1000,
                   "--input-ms", 80]
        moved, _, device = self.measure(*options)
        self.assertLess(moved, 12 * POOL)
        self.assertGreater(device["turns_total"], 20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
