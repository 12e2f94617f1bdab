"""Records figure 5.1's models with TensorFlow's profiler, on a GPU.

    record.py --bundle build/bundle --out FOLDER [--models ncf,bert]

Each on the machine's processor (`cpu`), on the GPU without METS (`stock`) and
with it (`mets`), at figure 5.1's sizes and in its steps. All start and warm up
together, and then have the machine one after the other, those of a model
behind each other.

FOLDER gets MODEL-WAY.xplane.pb.xz, without what is recorded of tf.data, and
record.json, and the logs. figures/figure.5.1/data/gpu keeps both, of which
figures/figure.5.1/tables.py makes the figure's data. What fails leaves
its error there. What is recorded on a GPU without any kernel is a failure: then
TensorFlow has not found libcupti.
"""

import concurrent.futures
import json
import pathlib
import shutil
import sys
import time

import trainings
from trainings import FAULTS, Failed, Lab, Training, about, parse, parser_of

sys.path[:0] = [str(trainings.ROOT / "figures"),
                str(trainings.ROOT / "figures" / "figure.5.1")]
import live  # noqa: E402
import recorded  # noqa: E402

WAYS = ["cpu", "stock", "mets"]
KERNELS = b"Stream #"  # What a GPU's lines in a profile are called.


class Recording:
    def __init__(self, lab, model, way):
        self.model, self.way = model, way
        self.complete = False
        self._lab = lab
        self._folder = lab.arguments.out / "profiles" / f"{model}-{way}"
        shutil.rmtree(self._folder, ignore_errors=True)
        self.training = Training(
            lab, model, way,
            [*live.sizes(model), "--steps", recorded.LAST, "--profile",
             f"{recorded.FIRST},{recorded.LAST}", "--profile-dir", self._folder,
             "--meet", recorded.FIRST])

    def take(self):
        """Lets it go on, waits for its end, gives its figures."""
        self._wait(self.training.ready)
        self.training.go()
        self._wait(self.training.done)
        result = self.training.result()
        plane, = self._folder.glob("plugins/profile/*/*.xplane.pb")
        data = plane.read_bytes()
        on_gpu = self.way != "cpu" and self._lab.arguments.device != "host"
        if on_gpu and KERNELS not in data:
            raise Failed("no kernel is recorded: is a libcupti.so.12 in "
                         f"LD_LIBRARY_PATH?\n{self.training.said()[-2000:]}")
        self.complete = True
        return {"bytes": len(data), "losses_hex": result["losses_hex"],
                "sha256": result["weights_sha256"],
                "step_ms": [1e3 * s for s in result["step_seconds"]],
                "peak_bytes": result["peak_bytes"], "mets": result["mets"],
                "versions": result["versions"]}

    def pack(self):
        if self.complete:
            recorded.pack(self._folder, self._lab.arguments.out /
                          f"{self.model}-{self.way}.xplane.pb.xz")

    def _wait(self, ready):
        self.training.expect_within(self._lab.arguments.limit)
        while not ready():
            time.sleep(0.05)


def main():
    parser = parser_of(__doc__)
    parser.set_defaults(limit=90)
    arguments = parse(parser, recorded.MODELS, WAYS)
    lab = Lab(arguments)
    for old in arguments.out.glob("*.xplane.pb*"):
        old.unlink()
    report = about("figures/gpu/zoo/record.py", arguments.commit)
    report["models"] = {model: live.MODELS[model] for model in arguments.models}
    report["steps"] = recorded.LAST - recorded.FIRST + 1
    report["figures"], failed = {}, False

    def note(model, way, figures):
        nonlocal failed
        of_model = report["figures"].setdefault(model, {})
        of_model[way] = figures
        stock = of_model.get("stock", {})
        if way == "mets" and "sha256" in figures and "sha256" in stock:
            figures["identical"] = all(figures[key] == stock[key]
                                       for key in ("losses_hex", "sha256"))
        failed |= "error" in figures or not figures.get("identical", True)
        said = {key: value for key, value in figures.items()
                if key in ("error", "bytes", "identical", "step_ms")}
        print(f"{lab.seconds():4.0f} s {model} {way}: {said}", flush=True)
        (arguments.out / "record.json").write_text(
            json.dumps(report, indent=1) + "\n", encoding="utf-8")

    begun = []
    try:
        for model in arguments.models:
            for way in arguments.ways:
                try:
                    begun.append(Recording(lab, model, way))
                except FAULTS as error:
                    note(model, way, {"error": str(error)})
        for each in begun:
            try:
                note(each.model, each.way, each.take())
            except FAULTS as error:
                note(each.model, each.way, {"error": str(error)})
            each.training.close()
    finally:
        for each in begun:
            each.training.close()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(Recording.pack, begun))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
