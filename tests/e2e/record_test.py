"""`metsctl record` of a live Keras training: the same bits, a whole trace."""

import collections
import lzma
import pathlib
import tempfile
import unittest

import harness

STEPS = 40


def events(file):
    """The fields of a trace's events."""
    lines = lzma.open(file, "rt").read().splitlines()
    assert lines[0] == "# mets-trace 1 job=recorded", lines[0]
    assert lines[-1] == f"# end {len(lines) - 3}", lines[-1]
    return [line.split(",") for line in lines[2:-1]]


class Record(unittest.TestCase):
    def test_a_recorded_training_is_unchanged_and_its_ops_are_named(self):
        alone = harness.outcome(harness.train_alone("mlp", STEPS))
        with tempfile.TemporaryDirectory() as out, \
                harness.Daemon(1024 * harness.MIB) as daemon:
            training = daemon.run("recorded", harness.training(
                "mlp", STEPS, f"{out}/result"))
            harness.wait_until_training(training)
            file = pathlib.Path(out, "trace.csv.xz")
            said = daemon.ctl("record", "recorded", file).stdout
            self.assertEqual(
                harness.outcome(harness.finish(training, f"{out}/result")),
                alone)
            self.check(events(file))
            self.assertIn("the job has ended", said)

    def check(self, rows):
        count = collections.Counter(row[1] for row in rows)
        self.assertEqual(count["begin"], count["end"])
        self.assertGreater(count["read"], 0)
        self.assertGreater(count["write"], 0)
        names = collections.Counter(row[4] for row in rows
                                    if row[1] == "begin")
        # oneDNN has names of its own, such as "_MklMatMul", on some processors.
        self.assertTrue(any("MatMul" in name for name in names), names)
        self.assertNotIn("", names)


if __name__ == "__main__":
    unittest.main(verbosity=2)
