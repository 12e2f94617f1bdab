"""Large profiles need little memory. METS_PROFILE_BYTES: how large they are,
32 MB if nothing is said."""

import csv
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("METS_BUILD_DIR", ROOT / "build"))
BYTES = int(os.environ.get("METS_PROFILE_BYTES", 32_000_000))
MEMORY = 500_000_000
SMALL = HERE / "profiles" / "cnn-stock.xplane.pb"
# An operator as events name it.
NAME = b"net/MatMul:MatMul"


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def write_planes(path):
    """One line of events of 1 us to 100 us, as long as the file; how many."""
    block = b"".join(
        field(4, b"\x08\x01\x10" + varint(us * 10**9) + b"\x18"
              + varint(us * 10**6) + field(4, b"\x08\x02\x20\x07"))
        for us in range(1, 101))
    repeat = 200
    blocks = BYTES // (repeat * len(block))
    metadata = b"\x08\x01" + field(2, NAME)
    rest = (field(2, b"/host:CPU")
            + field(4, b"\x08\x01" + field(2, metadata)))
    line = b"\x1a" + varint(blocks * repeat * len(block))
    with open(path, "wb") as file:
        file.write(b"\n" + varint(len(line) + blocks * repeat * len(block)
                                  + len(rest)) + line)
        for _ in range(blocks):
            file.write(block * repeat)
        file.write(rest)
    return blocks * repeat * 100


def write_trace(path):
    """The same as gzipped JSON; BYTES are those of the JSON."""
    block = "".join(json.dumps({
        "ph": "X", "pid": 7, "tid": 1, "ts": us, "dur": us, "name": "MatMul",
        "args": {"long_name": NAME.decode()}}) + "," for us in range(1, 101))
    blocks = BYTES // len(block)
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write('{"traceEvents":[{"ph":"M","pid":7,"name":"process_name",'
                   '"args":{"name":"/host:CPU"}},')
        for _ in range(blocks):
            file.write(block)
        file.write("{}]}")
    return blocks * 100


class Size(unittest.TestCase):
    def check(self, name, write):
        with tempfile.TemporaryDirectory() as folder:
            path, out = pathlib.Path(folder, name), pathlib.Path(folder, "o.csv")
            count = write(path)
            start = time.monotonic()
            process = subprocess.Popen(
                [BUILD / "bin/mets-opspeedup", "--model", "m", path, SMALL,
                 "--csv", out], env=dict(os.environ, METS_PYTHON=sys.executable),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            print(f"{name}: {count} events, "
                  f"{BYTES / 1e6:.0f} MB: {time.monotonic() - start:.1f} s, "
                  f"{usage.ru_utime + usage.ru_stime:.1f} s of a processor, "
                  f"{usage.ru_maxrss * 1024 / 1e6:.0f} MB", flush=True)
            self.assertLess(usage.ru_maxrss * 1024, MEMORY)
            with open(out, encoding="utf-8") as file:
                row, = (r for r in csv.DictReader(file)
                        if r["operator"] == "MatMul")
            self.assertEqual(row["base_count"], str(count))
            self.assertAlmostEqual(float(row["base_mean_us"]), 50.5, delta=1e-6)
            self.assertAlmostEqual(float(row["base_spread_us"]),
                                   (9999 / 12)**0.5, delta=1e-3)

    def test_planes(self):
        self.check("big.xplane.pb", write_planes)

    def test_trace(self):
        self.check("big.trace.json.gz", write_trace)


if __name__ == "__main__":
    unittest.main(verbosity=2)
