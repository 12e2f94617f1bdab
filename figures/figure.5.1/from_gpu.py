"""Makes the figure's data of what figures/gpu/zoo/record.py has recorded on a
GPU: data/gpu.csv (the GPU, over that machine's processor), data/gpu_mets.csv
(the GPU with METS, over without), both as Markdown, too, and data/gpu.json.

    from_gpu.py BUILD FOLDER [DATA]
"""

import json
import lzma
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# What is compared, and what that is called.
WAYS = {"gpu": (["cpu", "stock"], "CPU,GPU"),
        "gpu_mets": (["stock", "mets"], "GPU,METS")}


def unpack(folder, to):
    for packed in folder.glob("*.xplane.pb.xz"):
        (to / packed.stem).write_bytes(lzma.decompress(packed.read_bytes()))


def compare(build, figures, planes, data, name):
    """Of the models of which both runs are there; gives their number."""
    runs, labels = WAYS[name]
    words = []
    for model, of_model in figures.items():
        missing = [run for run in runs
                   if "error" in of_model.get(run, {"error": ""})]
        if missing:
            print(f"{name} is without {model}: it has no {missing[0]}",
                  file=sys.stderr)
            continue
        words += ["--model", model,
                  *(planes / f"{model}-{run}.xplane.pb" for run in runs)]
    if words:
        python = os.path.abspath(build / "venv/bin/python")
        subprocess.run(
            [build / "bin/mets-opspeedup", "--labels", labels,
             "--csv", data / f"{name}.csv", "--markdown", data / f"{name}.md",
             *words], check=True, env={"METS_PYTHON": python, **os.environ})
    return len(words) // 4


def main():
    build, folder, data = map(pathlib.Path, [*sys.argv[1:], HERE / "data"][:3])
    record = json.loads((folder / "record.json").read_text("utf-8"))
    figures = record["figures"]
    changed = [model for model, of_model in figures.items()
               if not of_model.get("mets", {}).get("identical", True)]
    if changed:
        sys.exit(f"METS changed the result of {', '.join(changed)}")
    with tempfile.TemporaryDirectory() as planes:
        unpack(folder, pathlib.Path(planes))
        compared = [compare(build, figures, pathlib.Path(planes), data, name)
                    for name in WAYS]
    (data / "gpu.json").write_text(json.dumps(record, indent=1) + "\n",
                                   encoding="utf-8")
    sys.exit(0 if min(compared) == len(figures) else 1)


if __name__ == "__main__":
    main()
