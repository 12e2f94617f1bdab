"""Models of the zoo learn, and give the same bits each time.

    python zoo_test.py [MODEL...]     all of them, if none is named

Two processes train each model at its small size; `--child` is one of them.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

import run

STEPS = 24
EPOCH = run.BATCHES  # Steps that see each row once.
RUNNER = pathlib.Path(run.__file__)
models = []


def train_all(file, names):
    """Writes {model: [losses, digest]}."""
    args = run.parse(["--model", "all", "--steps", str(STEPS), "--threads",
                      "1", "--parallel-ops", "1"])
    run.choose_device(args)
    import tensorflow as tf
    import zoo
    run.set_up(tf, args)
    results = {}
    for name in names or zoo.MODELS:
        print(name, flush=True)
        tf.keras.backend.clear_session()
        tf.keras.utils.set_random_seed(run.SEED)
        task, batch = zoo.make(name, run.BATCHES, "small")
        losses, *_ = run.train(tf, args, task, batch)
        results[name] = [losses, run.digest(task.model)]
    pathlib.Path(file).write_text(json.dumps(results))


class Zoo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder, str(i)) for i in range(2)]
            children = [subprocess.Popen([sys.executable, __file__, "--child",
                                          file, *models]) for file in files]
            codes = [child.wait() for child in children]
            assert codes == [0, 0], codes
            cls.first, cls.second = (json.loads(file.read_text())
                                     for file in files)

    def test_each_model_learns(self):
        for name, (losses, _) in self.first.items():
            with self.subTest(name):
                self.assertLess(statistics.mean(losses[-EPOCH:]),
                                0.98 * statistics.mean(losses[:EPOCH]))

    def test_two_runs_give_the_same_bits(self):
        self.assertTrue(self.first)
        self.assertEqual(self.first, self.second)


class Runner(unittest.TestCase):
    def run_model(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "result.json")
            subprocess.run([sys.executable, RUNNER, "--model", "ncf", "--size",
                            "small", "--json", file, *words], check=True)
            return json.loads(file.read_text())

    def test_it_reports_and_records(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_model(
                "--batch", "64", "--steps", "5", "--profile", "2,3",
                "--profile-dir", folder, "--memory", str(64 << 20), "--set",
                "users=1000")
            self.assertEqual(len(list(pathlib.Path(folder).glob(
                "plugins/profile/*/*.xplane.pb"))), 1)
        self.assertEqual(len(result["losses"]), 5)
        self.assertEqual(result["batch"], 64)
        steady = result["steady_seconds"]
        self.assertLessEqual(steady["min"], steady["median"])
        self.assertLessEqual(steady["median"], steady["max"])
        # Users: (16 + 32) floats each, with Adam's two moments.
        self.assertGreater(result["peak_bytes"], 1000 * 48 * 4 * 3)
        self.assertIsNone(result["mets"])

    def test_it_refuses_what_it_does_not_know(self):
        for words in (["--device", "tpu"], ["--model", "none"],
                      ["--memory", "64", "--device", "mets"],
                      ["--device", "mets"]):
            with self.assertRaises(subprocess.CalledProcessError):
                self.run_model(*words)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        train_all(sys.argv[2], sys.argv[3:])
    else:
        models = sys.argv[1:]
        unittest.main(argv=sys.argv[:1], verbosity=2)
