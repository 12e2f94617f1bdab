"""Makes data/WAY.csv and data/WAY.md of the profiles in data/cpu and data/gpu,
which measure.py and figures/gpu/zoo/record.py have recorded.

    tables.py [DATA]

What is compared: on a processor, without METS and in each other way; on a
machine with a GPU, its processor and the GPU (gpu), and the GPU without METS and
with it (gpu_mets). Exits with 1 where a profile is missing.
"""

import pathlib
import subprocess
import sys
import tempfile

import common
import recorded

HERE = pathlib.Path(__file__).resolve().parent
# The recording, its two runs, and what these are called.
WAYS = {way: ("cpu", ["stock", way], f"stock,{way}")
        for way in ("mets", "one_thread", "no_onednn")}
WAYS["gpu"] = ("gpu", ["cpu", "stock"], "CPU,GPU")
WAYS["gpu_mets"] = ("gpu", ["stock", "mets"], "GPU,METS")


def tell_missing(way, paths):
    missing = [str(path) for path in paths if not path.exists()]
    for path in missing:
        print(f"{way}: there is no {path}", file=sys.stderr)
    return bool(missing)


def compare(data, way):
    """Of the models of which both runs are there; whether all are."""
    recording, runs, labels = WAYS[way]
    words, complete = [], True
    with tempfile.TemporaryDirectory() as planes:
        for model in recorded.MODELS:
            names = [f"{model}-{run}.xplane.pb" for run in runs]
            packed = [data / recording / f"{name}.xz" for name in names]
            if tell_missing(way, packed):
                complete = False
                continue
            words += ["--model", model]
            for path, name in zip(packed, names):
                plane = pathlib.Path(planes, name)
                recorded.unpack(path, plane)
                words.append(plane)
        if words:
            subprocess.run(
                [sys.executable, "-m", "opspeedup", "--labels", labels,
                 "--csv", data / f"{way}.csv", "--markdown",
                 data / f"{way}.md", *words], check=True,
                stdout=subprocess.DEVNULL, cwd=common.ROOT / "figures")
    return complete


def main():
    data = pathlib.Path(sys.argv[1]).resolve() if sys.argv[1:] else HERE / "data"
    complete = [compare(data, way) for way in WAYS]
    sys.exit(0 if all(complete) else 1)


if __name__ == "__main__":
    main()
