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
PHASES = live.Phases(FIRST - 1, LAST - FIRST + 1)


def start(build, metsd, model, way, profile):
    """A training that is recorded."""
    words = [*PHASES.options, "--profile", f"{FIRST},{LAST}", "--profile-dir",
             profile]
    if way == "mets":
        return metsd.train(model, model, *words)
    if way == "one_thread":
        words += ["--threads", 1]
    env = {"TF_ENABLE_ONEDNN_OPTS": "0"} if way == "no_onednn" else {}
    return live.stock(build, model, *words, **env)


def record(build, model, profiles):
    """Trains in each way, one after the other."""
    with live.Metsd(build, "2GiB") as metsd:
        trainings = {way: start(build, metsd, model, way, profile)
                     for way, profile in profiles.items()}
        with live.standing(*trainings.values()):
            for training in trainings.values():
                PHASES.run(0, training)
            stock, mets = (live.outcome(trainings[way].result())
                           for way in ("stock", "mets"))
    if mets != stock:
        sys.exit(f"{model}: METS changed the result")


def main():
    build = pathlib.Path(sys.argv[1])
    models = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            profiles = {way: f"{folder}/{model}-{way}"
                        for way in ("stock", *WAYS)}
            record(build, model, profiles)
            for way in WAYS:
                models[way] += ["--model", model, profiles["stock"],
                                profiles[way]]
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
