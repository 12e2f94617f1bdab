"""Records models of the zoo on the CPU in several ways; writes
data/cpu/MODEL-WAY.xplane.pb.xz, of which tables.py compares the operators.

    measure.py BUILD

The ways: without METS, with oneDNN and a thread a core (stock); with METS on a
device where all fits (mets); with one thread (one_thread); without oneDNN
(no_onednn).
"""

import pathlib
import sys
import tempfile

import common
import live
from recorded import FIRST, LAST, MODELS, pack

HERE = pathlib.Path(__file__).resolve().parent
WAYS = ["stock", "mets", "one_thread", "no_onednn"]
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
    kept = HERE / "data/cpu"
    kept.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            profiles = {way: pathlib.Path(folder, f"{model}-{way}")
                        for way in WAYS}
            record(build, model, profiles)
            for way, profile in profiles.items():
                pack(profile, kept / f"{model}-{way}.xplane.pb.xz")
            print(f"recorded {model}", flush=True)
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure",
                      models={model: live.MODELS[model] for model in MODELS},
                      steps=LAST - FIRST + 1, versions=live.versions(build))


if __name__ == "__main__":
    main()
