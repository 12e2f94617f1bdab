"""kill -9 of a job at a random moment: the other jobs do not notice."""

import random
import tempfile
import time
import unittest

import harness

TRIES = 20
SEED = 20261128
SURVIVOR_STEPS = 60
MIB = harness.MIB


class KillJob(unittest.TestCase):
    def test_survivor_finishes_identical_and_memory_returns(self):
        rng = random.Random(SEED)
        alone = harness.outcome(harness.train_alone("mlp", SURVIVOR_STEPS))
        pool = 192 * MIB
        with tempfile.TemporaryDirectory() as out, \
                harness.Daemon(pool) as daemon:
            survivor, tries = None, 0
            while tries < TRIES:
                if survivor is None:
                    survivor = daemon.run("survivor", harness.training(
                        "mlp", SURVIVOR_STEPS, f"{out}/survivor"))
                    harness.wait_until_training(survivor)
                if survivor.poll() is not None:
                    self.check(survivor, f"{out}/survivor", alone)
                    survivor = None
                    continue
                self.kill_one(daemon, rng, forks=tries % 2 == 1)
                tries += 1
            if survivor is not None:
                self.check(survivor, f"{out}/survivor", alone)
            daemon.wait_until_unused(2)

    def kill_one(self, daemon, rng, forks):
        """Starts a victim that uses 60 % of the pool, kills it."""
        victim = daemon.run("victim", [harness.BIN / "mets_hog", "--mib", 110,
                                       *(["--fork"] if forks else [])])
        harness.wait_for(lambda: (job := daemon.job("victim"))
                         and job["resident_bytes"] > 0, 30,
                         f"the victim has memory: {harness.text_of(victim)}")
        time.sleep(rng.uniform(0, 1.0))
        victim.kill()
        victim.wait()
        def gone():
            job = daemon.job("victim")
            return job is None or (job["sessions"] == 0
                                   and job["resident_bytes"] == 0
                                   and job["swapped_bytes"] == 0)
        harness.wait_for(gone, 1, f"its memory is back: {daemon.status()}")

    def check(self, survivor, out, alone):
        self.assertEqual(harness.outcome(harness.finish(survivor, out)), alone)


if __name__ == "__main__":
    unittest.main(verbosity=2)
