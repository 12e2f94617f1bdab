"""Two unmodified trainings share a device that is too small for both."""

import tempfile
import threading
import unittest

import harness

STEPS = {"cnn": 6, "mlp": 20}
# Less than the larger training needs alone, so that bytes must move whatever
# the policy.
PERCENT_OF_LARGER = 90


class SharedTrainings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.models = tuple(STEPS)
        cls.alone = {m: harness.train_alone(m, STEPS[m]) for m in cls.models}
        with harness.Daemon(4 << 30) as daemon, \
                tempfile.TemporaryDirectory() as out:
            cls.peak = {}
            for m in cls.models:
                job = daemon.run(m, harness.training(m, 3, f"{out}/{m}"))
                cls.peak[m] = harness.finish(job, f"{out}/{m}")["mets"][
                    "peak_live_bytes"]

    def share(self, pool):
        """Runs both; returns the results and the most chunk bytes ever seen."""
        most, stop = [0], threading.Event()
        with harness.Daemon(pool) as daemon, \
                tempfile.TemporaryDirectory() as out:
            jobs = {m: daemon.run(m, harness.training(m, STEPS[m], f"{out}/{m}"))
                    for m in self.models}
            pids = [daemon.process.pid, *(j.pid for j in jobs.values())]

            def watch():
                while not stop.wait(0.1):
                    most[0] = max(most[0], harness.memory_bytes(pids, "mets-chunk"))

            watcher = threading.Thread(target=watch)
            watcher.start()
            try:
                results = {m: harness.finish(j, f"{out}/{m}")
                           for m, j in jobs.items()}
            finally:
                stop.set()
                watcher.join()
            daemon.wait_until_unused()
        return results, most[0]

    def test_results_are_those_of_running_alone_within_the_pool(self):
        pool = max(self.peak.values()) * PERCENT_OF_LARGER // 100
        pool -= pool % (64 << 10)
        results, most = self.share(pool)
        self.assertLessEqual(most, pool)
        self.assertGreater(most, pool // 2, "the pool was hardly used")
        for model, result in results.items():
            self.assertEqual(harness.outcome(result),
                             harness.outcome(self.alone[model]))
            self.assertGreater(result["mets"]["evicted_bytes_total"], 0, model)
            self.assertGreater(result["mets"]["restored_bytes_total"], 0, model)


if __name__ == "__main__":
    unittest.main(verbosity=2)
