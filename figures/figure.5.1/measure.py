"""Records models of the zoo on the CPU in several ways, compares their operators
with mets-opspeedup; writes data/WAY.csv and data/WAY.md.

    measure.py BUILD

What each way is compared with is a training without METS, with oneDNN and a
thread a core: with METS on a device where all fits (mets), with one thread
(one_thread), without oneDNN (no_onednn).
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import common
import live
from recorded import FIRST, LAST, MODELS

HERE = pathlib.Path(__file__).resolve().parent
WAYS = ["mets", "one_thread", "no_onednn"]


def record(build, model, way, folder):
    """Trains; gives the folder of the profile, and the training's result."""
    profile = f"{folder}/{model}-{way}"
    words = ["--steps", LAST, "--profile", f"{FIRST},{LAST}", "--profile-dir",
             profile]
    if way == "mets":
        with live.Metsd(build, "2GiB") as metsd:
            return profile, metsd.train(model, model, *words).result()
    if way == "one_thread":
        words += ["--threads", 1]
    env = {"TF_ENABLE_ONEDNN_OPTS": "0"} if way == "no_onednn" else {}
    return profile, live.stock(build, model, *words, **env).result()


def main():
    build = pathlib.Path(sys.argv[1])
    models = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            base, stock = record(build, model, "stock", folder)
            for way in WAYS:
                other, result = record(build, model, way, folder)
                if way == "mets" and live.outcome(result) != live.outcome(stock):
                    sys.exit(f"{model}: METS changed the result")
                models[way] += ["--model", model, base, other]
            print(f"recorded {model}", flush=True)
        python = os.path.abspath(build / "venv/bin/python")
        for way in WAYS:
            subprocess.run(
                [build / "bin/mets-opspeedup", "--labels", f"stock,{way}",
                 "--csv", HERE / f"data/{way}.csv",
                 "--markdown", HERE / f"data/{way}.md", *models[way]],
                check=True, env=dict(os.environ, METS_PYTHON=python))
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure",
                      models={model: live.MODELS[model] for model in MODELS},
                      steps=LAST - FIRST + 1, versions=live.versions(build))


if __name__ == "__main__":
    main()
