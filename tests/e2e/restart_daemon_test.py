"""kill -9 and restart of metsd during two trainings: both finish identical."""

import random
import tempfile
import time
import unittest

import harness

TRIES = 5
SEED = 5
STEPS = {"cnn": 16, "mlp": 50}


class RestartDaemon(unittest.TestCase):
    def test_trainings_finish_identical(self):
        rng = random.Random(SEED)
        models = tuple(STEPS)
        alone = {m: harness.outcome(harness.train_alone(m, STEPS[m]))
                 for m in models}
        restarts = 0
        while restarts < TRIES:
            restarts += self.train_with_restarts(rng, models, alone)

    def train_with_restarts(self, rng, models, alone):
        """Runs both trainings; returns how often metsd was killed under them (not
        at all, if one had ended before the other began)."""
        pool, restarts = 200 * harness.MIB, 0
        with harness.Daemon(pool) as daemon, \
                tempfile.TemporaryDirectory() as out:
            jobs = {m: daemon.run(m, harness.training(m, STEPS[m], f"{out}/{m}"),
                                  METS_WAIT="120s") for m in models}
            for job in jobs.values():
                harness.wait_until_training(job)
            while restarts < TRIES and all(j.poll() is None
                                           for j in jobs.values()):
                daemon.kill()
                time.sleep(rng.uniform(0, 0.5))
                daemon.start()
                restarts += 1
                time.sleep(rng.uniform(1, 3))
            for m, job in jobs.items():
                result = harness.finish(job, f"{out}/{m}")
                self.assertEqual(harness.outcome(result), alone[m], m)
            daemon.wait_until_unused()
        return restarts


if __name__ == "__main__":
    unittest.main(verbosity=2)
