"""What mets-opspeedup says of recorded profiles, against pandas on what
TensorFlow's own classes read from them."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import pandas
from tensorflow.tsl.profiler.protobuf import xplane_pb2

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("METS_BUILD_DIR", ROOT / "build"))
PROFILES = {name: HERE / "profiles" / f"{name}.xplane.pb"
            for name in ("cnn-stock", "cnn-mets", "gru-stock")}


def run(*words):
    env = dict(os.environ, METS_PYTHON=sys.executable)
    return subprocess.run([BUILD / "bin/mets-opspeedup", *map(str, words)],
                          env=env, capture_output=True, text=True, check=False)


def space_of(path):
    return xplane_pb2.XSpace.FromString(path.read_bytes())


def events_of(space):
    """A line per event of the host: name and microseconds."""
    plane, = (p for p in space.planes if p.name == "/host:CPU")
    return pandas.DataFrame(
        [(plane.event_metadata[event.metadata_id].name, event.duration_ps / 1e6)
         for line in plane.lines for event in line.events],
        columns=["event", "us"])


def by_type(space):
    events = events_of(space)
    # What TensorFlow's profiler takes for operators: tf_op_utils.cc.
    parts = events.event.str.extract(
        r"^([A-Za-z0-9.][\w.\\/>-]*):([A-Za-z_]\w*)$")
    kinds = parts[1].str.replace("_MklNativeFused", "_Fused")
    events["operator"] = kinds.str.replace("^_Mkl(Native)?", "", regex=True)
    return events.dropna().groupby("operator").us.agg(
        ["count", "mean", "std", "min", "max", "sum"]).fillna({"std": 0.0})


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compare(self, base, other, *words):
        out = self.folder / "out.csv"
        done = run("--model", "m", base, other, "--csv", out, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pandas.read_csv(out).set_index("operator"), done.stdout

    def check_side(self, table, side, expected):
        table = table[table[f"{side}_count"] > 0]
        self.assertEqual(set(table.index), set(expected.index))
        expected = expected.loc[table.index]
        pandas.testing.assert_series_equal(
            table[f"{side}_count"], expected["count"], check_names=False)
        for column, name in [("mean_us", "mean"), ("spread_us", "std"),
                             ("min_us", "min"), ("max_us", "max"),
                             ("total_us", "sum")]:
            pandas.testing.assert_series_equal(
                table[f"{side}_{column}"], expected[name], rtol=1e-9,
                check_names=False)
        pandas.testing.assert_series_equal(
            table[f"{side}_share"], expected["sum"] / expected["sum"].sum(),
            rtol=1e-9, check_names=False)

    def test_numbers_are_those_of_pandas(self):
        for base, other in [("cnn-stock", "cnn-mets"), ("gru-stock", "cnn-mets")]:
            table, _ = self.compare(PROFILES[base], PROFILES[other])
            a, b = (by_type(space_of(PROFILES[p])) for p in (base, other))
            self.assertGreater(len(a), 10)
            self.check_side(table, "base", a)
            self.check_side(table, "other", b)
            both = table.dropna(subset="ratio").index
            self.assertEqual(set(both), set(a.index) & set(b.index))
            pandas.testing.assert_series_equal(
                table.ratio[both], a["mean"][both] / b["mean"][both], rtol=1e-9,
                check_names=False)

    def test_totals_weigh_by_the_bases_counts(self):
        _, text = self.compare(PROFILES["gru-stock"], PROFILES["cnn-mets"])
        a, b = (by_type(space_of(PROFILES[p])) for p in ("gru-stock", "cnn-mets"))
        both = a.index.intersection(b.index)
        ratio = a["sum"][both].sum() / (a["count"][both] * b["mean"][both]).sum()
        total = text.splitlines()[2].split(" | ")
        self.assertEqual(total[:2], ["| m", str(a["count"].sum())])
        self.assertEqual(total[5:8], [str(len(both)), str(len(a) - len(both)),
                                      str(len(b) - len(both))])
        self.assertAlmostEqual(float(total[8].rstrip("| ")), ratio,
                               delta=0.006 * ratio)

    def test_by_name_tells_operators_of_one_type_apart(self):
        table, _ = self.compare(PROFILES["cnn-stock"], PROFILES["cnn-mets"],
                                "--by", "name")
        kinds = pandas.Series(table.index).str.split(":").str[-1].values
        counts = table.base_count.groupby(kinds).sum()
        expected = by_type(space_of(PROFILES["cnn-stock"]))["count"]
        self.assertGreater(len(table), len(expected))
        self.assertEqual(counts[counts > 0].to_dict(), expected.to_dict())

    def test_several_models_are_in_one_table_and_one_plot(self):
        plot, text = self.folder / "p.png", self.folder / "t.md"
        pair = [PROFILES["cnn-stock"], PROFILES["cnn-mets"]]
        done = run("--model", "one", *pair, "--model", "two", *reversed(pair),
                   "--labels", "off,on", "--plot", plot, "--markdown", text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(plot.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertRegex(text.read_text(),
                         r"off / on(.|\n)*\| one \|.*\n\| two \|")
        self.assertIn("two, on", done.stderr)  # The progress bar.

    def test_a_run_is_found_below_the_callbacks_folder(self):
        for when, name in [("2026_01_01", "gru-stock"),
                           ("2026_01_02", "cnn-mets")]:
            run_folder = self.folder / "logs/train/plugins/profile" / when
            run_folder.mkdir(parents=True)
            (run_folder / "h.xplane.pb").write_bytes(PROFILES[name].read_bytes())
        table, _ = self.compare(self.folder / "logs", PROFILES["cnn-mets"])
        self.assertTrue((table.ratio == 1).all())  # The last one.

    def trace_of(self, name):
        """The profile as trace.json.gz, as TensorFlow's converter writes it."""
        plane = space_of(PROFILES[name]).planes[0]
        events = [{"ph": "M", "pid": 7, "name": "process_name",
                   "args": {"name": "/host:CPU"}}]
        for tid, line in enumerate(plane.lines):
            for event in line.events:
                kind = plane.event_metadata[event.metadata_id]
                said = {"ph": "X", "pid": 7, "tid": tid,
                        "ts": event.offset_ps / 1e6,
                        "dur": event.duration_ps / 1e6,
                        "name": kind.display_name or kind.name}
                if kind.display_name:
                    said["args"] = {"long_name": kind.name}
                events.append(said)
        path = self.folder / f"{name}.trace.json.gz"
        path.write_bytes(gzip.compress(json.dumps({
            "displayTimeUnit": "ns", "metadata": {"highres-ticks": True},
            "traceEvents": [*events, {}]}).encode()))
        return path

    def test_traces_say_the_same_as_planes(self):
        table, _ = self.compare(PROFILES["gru-stock"], self.trace_of("gru-stock"))
        pandas.testing.assert_series_equal(
            table.base_count, table.other_count, check_names=False)
        self.assertLess((table.ratio - 1).abs().max(), 1e-9)

    def gpu_profile(self):
        """Two steps of MatMul, two kernels each, and a copy, in one stream; the
        launches on the host are longer."""
        space = space_of(PROFILES["cnn-stock"])
        plane = space.planes.add(name="/device:GPU:0")
        names = {1: "tf_op", 2: "model/MatMul:MatMul"}
        for key, name in names.items():
            plane.stat_metadata[key].id, plane.stat_metadata[key].name = key, name
        for key, name in {1: "gemm", 2: "reduce", 3: "MemcpyH2D"}.items():
            plane.event_metadata[key].id = key
            plane.event_metadata[key].name = name
        summed = plane.lines.add(name="TensorFlow Ops").events.add(
            metadata_id=1, duration_ps=10**12)
        summed.stats.add(metadata_id=1, ref_value=2)
        stream = plane.lines.add(name="Stream #13(Compute)")
        for kernel, us in [(1, 4), (2, 1), (3, 50), (1, 6), (2, 1)]:
            event = stream.events.add(metadata_id=kernel, duration_ps=us * 10**6)
            if kernel != 3:
                event.stats.add(metadata_id=1, ref_value=2)
        path = self.folder / "gpu.xplane.pb"
        path.write_bytes(space.SerializeToString())
        return path

    def test_an_operators_kernels_are_its_time_on_a_device(self):
        table, _ = self.compare(PROFILES["cnn-stock"], self.gpu_profile())
        row = table.loc["MatMul"]
        self.assertEqual((row.base_where, row.other_where), ("host", "device"))
        self.assertEqual((row.other_count, row.other_min_us, row.other_max_us,
                          row.other_mean_us), (2, 5, 7, 6))
        self.assertEqual(table.loc["Mul"].other_where, "host")


class Errors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.good = PROFILES["cnn-stock"]

    def check(self, path, said):
        done = run("--model", "m", self.good, path)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertNotIn("Traceback", done.stderr)
        self.assertRegex(done.stderr, f"mets-opspeedup: .*{said}")

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def test_truncated_planes(self):
        data = self.good.read_bytes()
        for part in (0.01, 0.5, 0.999):
            path = self.write("t.xplane.pb", data[:int(part * len(data))])
            self.check(path, "truncated or no profile")

    def test_truncated_traces(self):
        text = b'{"traceEvents":[{"ph":"X","pid":1,"name":"a"},{"ph":'
        self.check(self.write("a.trace.json.gz", gzip.compress(text)),
                   "truncated or no trace")
        whole = gzip.compress(text + b'"X","pid":1,"name":"b"}]}')
        self.check(self.write("b.trace.json.gz", whole[:-9]),
                   "truncated or no trace")

    def test_foreign_files(self):
        self.check(self.write("a.xplane.pb", b"%PDF-1.7 is something else"),
                   "no profile of TensorFlow")
        self.check(self.write("b.xplane.pb", b"\n\x02\xff\xff"), "no profile")
        self.check(self.write("c.trace.json.gz", b"{}"), "no trace of TensorFlow")
        self.check(self.write("d.trace.json.gz", gzip.compress(b"{}")),
                   "no trace")
        self.check(self.write("e.txt", b""), "neither an .*xplane.pb nor")
        self.check(self.write("f.xplane.pb", b""), "is empty")

    def test_nothing_recorded(self):
        self.check(self.folder, "has no profile.*profile_batch")
        self.check(self.folder / "none", "there is no .*profile_batch")
        space = xplane_pb2.XSpace()
        space.planes.add(name="/host:CPU")
        self.check(self.write("e.xplane.pb", space.SerializeToString()),
                   "no TensorFlow operators")


if __name__ == "__main__":
    unittest.main(verbosity=2)
