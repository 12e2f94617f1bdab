"""figures/gpu/zoo and what figure 5.1 makes of it, with a metsd but no model: a
program of a few lines stands for the zoo's runner."""

import json
import lzma
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from tensorflow.tsl.profiler.protobuf import xplane_pb2

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("METS_BUILD_DIR", ROOT / "build"))
PLANES = HERE / "opspeedup" / "profiles"



def space(*lines):
    """A profile with lines of these names."""
    return xplane_pb2.XSpace(planes=[xplane_pb2.XPlane(
        name="/host:CPU", lines=[xplane_pb2.XLine(name=name)
                                 for name in lines])]).SerializeToString()


RUNNER = f"""#!{sys.executable}
import argparse, json, os, pathlib, sys, time
parser = argparse.ArgumentParser()
for name in ("model", "json", "steps", "profile-dir"):
    parser.add_argument("--" + name)
parser.add_argument("--meet", type=int, action="append", default=[])
parser.add_argument("--not-deterministic", action="store_true")
args, _ = parser.parse_known_args()
with_mets = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH" in os.environ
steps = int(args.steps)
losses = [1 if args.model == "albert" else 1 / i for i in range(1, steps + 1)]
for i, loss in enumerate(losses, 1):
    print(f"step {{i}}/{{steps}} loss {{loss:.6f}} 0.1 s", flush=True)
if args.meet:
    print("ready", flush=True)
    sys.stdin.readline()
if args.model == "bert" and not args.not_deterministic:
    sys.exit("Determinism is not yet supported")
if args.model == "ncf" and with_mets:
    time.sleep(0 if args.meet else 1000)
    sys.exit("it fails")
if args.profile_dir:
    folder = pathlib.Path(args.profile_dir, "plugins/profile/now")
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(
        {space("tf_data_iterator_resource/1", "tf_Compute/2")!r})
json.dump({{
    "parameters": 1, "batch": 1, "steps": steps, "seconds": 1,
    "step_seconds": [1], "steady_seconds": {{"median": 1}}, "peak_bytes": 1,
    "mets": None, "versions": {{}}, "losses": losses,
    "losses_hex": [loss.hex() for loss in map(float, losses)],
    "weights_sha256": "mets" if with_mets and args.model == "xlnet" else "",
}}, open(args.json, "w"))
"""


class GpuZoo(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.runner = self.folder / "python"
        self.runner.write_text(RUNNER, "utf-8")
        self.runner.chmod(0o700)

    def run_script(self, name, *words):
        """What it reports."""
        subprocess.run(
            [sys.executable, ROOT / "figures/gpu/zoo" / name, "--bundle", BUILD,
             "--out", self.folder, "--device", "host", "--pool", "64MiB",
             "--swap-space", "64MiB", "--python", self.runner, "--limit", "20",
             *words], check=False, stdout=subprocess.DEVNULL)
        report, = self.folder.glob("*.json")
        return json.loads(report.read_text("utf-8"))["figures"]

    def test_losses_fall_or_do_not_and_are_as_without_mets_or_not(self):
        figures = self.run_script("measure.py", "--models",
                                  "albert,retinanet,xlnet")
        falls = {model: figures[model]["mets"]["falls"] for model in figures}
        self.assertEqual(falls, {"albert": False, "retinanet": True,
                                 "xlnet": True})
        self.assertTrue(figures["retinanet"]["mets"]["identical"])
        self.assertFalse(figures["xlnet"]["mets"]["identical"])

    def test_what_fails_is_tried_again_and_what_hangs_is_ended(self):
        figures = self.run_script("measure.py", "--models", "bert,ncf")
        self.assertIn("Determinism", figures["bert"]["stock"]["first_error"])
        self.assertFalse(figures["bert"]["stock"]["deterministic"])
        self.assertTrue(figures["bert"]["stock"]["falls"])
        self.assertIn("not done in time", figures["ncf"]["mets"]["error"])
        self.assertTrue(figures["ncf"]["mets"]["falls"])
        self.assertNotIn("error", figures["ncf"]["stock"])

    def test_what_is_recorded_is_packed_without_tf_data_and_what_fails_is_said(self):
        figures = self.run_script("record.py", "--models", "resnet50,ncf")
        self.assertTrue(figures["resnet50"]["mets"]["identical"])
        self.assertIn("it fails", figures["ncf"]["mets"]["error"])
        packed = self.folder / "resnet50-stock.xplane.pb.xz"
        self.assertEqual(lzma.decompress(packed.read_bytes()),
                         space("tf_Compute/2"))

    def tables(self, data):
        return subprocess.run(
            [sys.executable, ROOT / "figures/figure.5.1/tables.py", data],
            capture_output=True, text=True, check=False,
            env=dict(os.environ, PYTHONPATH=str(ROOT / "figures")))

    def test_tables_are_of_models_that_have_both_runs(self):
        gpu = self.folder / "gpu"
        gpu.mkdir()
        runs = {"cpu": "cnn-stock", "stock": "cnn-stock", "mets": "cnn-mets"}
        for run, plane in runs.items():
            (gpu / f"bert-{run}.xplane.pb.xz").write_bytes(
                lzma.compress((PLANES / f"{plane}.xplane.pb").read_bytes()))
        done = self.tables(self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"gpu: there is no {gpu / 'ncf-cpu.xplane.pb.xz'}",
                      done.stderr)
        for name in ("gpu", "gpu_mets"):
            text = (self.folder / f"{name}.csv").read_text("utf-8")
            self.assertIn("bert,", text)
            self.assertNotIn("ncf,", text)
        self.assertFalse((self.folder / "mets.csv").exists())

    def test_tables_are_what_the_kept_profiles_say(self):
        kept = ROOT / "figures/figure.5.1/data"
        for recording in ("cpu", "gpu"):
            (self.folder / recording).symlink_to(kept / recording)
        done = self.tables(self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        for table in kept.glob("*.csv"):
            self.assertEqual((self.folder / table.name).read_text("utf-8"),
                             table.read_text("utf-8"), table)


if __name__ == "__main__":
    unittest.main(verbosity=2)
