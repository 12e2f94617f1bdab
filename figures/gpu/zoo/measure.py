"""Trains every model of the zoo on a GPU, at its full size.

    measure.py --bundle build/bundle --out FOLDER [--models ncf,bert]

Each without METS (`stock`) and with it, in a pool with room for all (`mets`);
as many at once as --at-once says, so step times are not for comparison.
`falls`: the mean loss of the last four steps is below 0.98 of that of the first
four (four batches come again and again). `identical`: losses and weights are
those of stock.

FOLDER gets zoo.json, whenever a training ends, and the logs. What fails leaves
its error there and the losses that it had said, and is tried once more behind
all others, without TensorFlow's determinism if that was what failed.
"""

import collections
import json
import re
import statistics
import sys
import time

from trainings import FAULTS, Lab, Training, about, parse, parser_of

EPOCH = 4  # Steps that see each row once.
# Steps. What takes long to start comes first, then what is most likely to work.
MODELS = {
    "nhnet": 40, "bert": 80, "ncf": 60, "mnist_cnn": 60, "transformer": 40,
    "resnet50": 40, "albert": 80, "bert_span": 40, "albert_span": 40,
    "xlnet": 40, "efficientnet_b0": 30, "retinanet": 30, "mask_rcnn": 30,
    "shapemask": 30,
}
WAYS = ["stock", "mets"]
Wanted = collections.namedtuple("Wanted", "model way words error",
                                defaults=([], None))


def learnt(losses):
    """Whether a training's losses fall, and from where to where."""
    if len(losses) < 2 * EPOCH:
        return {"losses": losses}
    first, last = (statistics.mean(part)
                   for part in (losses[:EPOCH], losses[-EPOCH:]))
    return {"first": first, "last": last, "falls": last < 0.98 * first,
            "losses": losses}


def figures_of(result):
    return {
        "parameters": result["parameters"], "batch": result["batch"],
        "steps": result["steps"], "seconds": result["seconds"],
        "step_ms": 1e3 * result["steady_seconds"]["median"],
        "peak_bytes": result["peak_bytes"], "mets": result["mets"],
        "sha256": result["weights_sha256"], **learnt(result["losses"])}


def said_losses(text):
    return [float(loss) for loss in re.findall(r"^step \S+ loss (\S+)", text,
                                               re.MULTILINE)]


def compare(figures):
    """Says of a model with METS whether it is as without."""
    stock, mets = (figures.get(way, {}) for way in WAYS)
    if "sha256" in stock and "sha256" in mets:
        mets["identical"] = all(stock[key] == mets[key]
                                for key in ("sha256", "losses"))


def start(lab, wanted):
    arguments = lab.arguments
    steps = arguments.steps or MODELS[wanted.model]
    return Training(lab, wanted.model, wanted.way,
                    ["--size", arguments.size, "--steps", steps,
                     *wanted.words])


def finish(wanted, training, error, seconds):
    """A training's figures, and how it is to be tried again, if it is."""
    figures, again = {"ended_at": seconds}, None
    if error is None:
        figures |= figures_of(training.result())
    else:
        text = str(error)
        figures |= {"error": text,
                    **learnt(said_losses(training.said() if training else ""))}
        if wanted.error is None and "not done in time" not in text:
            more = ["--not-deterministic"] if "eterminis" in text else []
            again = wanted._replace(words=more, error=text)
    if wanted.error is not None:
        figures["first_error"] = wanted.error
        figures["deterministic"] = not wanted.words
    return figures, again


def measure(lab, queue, note):
    """Trains all that are wanted; `note` gets each one's figures."""
    running = []
    try:
        while running or (queue and lab.may_begin()):
            if (queue and lab.may_begin()
                    and len(running) < lab.arguments.at_once):
                wanted = queue.popleft()
                try:
                    running.append((wanted, start(lab, wanted)))
                except FAULTS as error:
                    note(wanted, *finish(wanted, None, error, lab.seconds()))
                continue
            for wanted, training in list(running):
                error = None
                try:
                    if not training.done():
                        continue
                    training.result()
                except FAULTS as fault:
                    error = fault
                figures, again = finish(wanted, training, error, lab.seconds())
                running.remove((wanted, training))
                training.close()
                note(wanted, figures, again)
            time.sleep(0.1)
    finally:
        for _, training in running:
            training.close()


def parser():
    result = parser_of(__doc__)
    result.add_argument("--size", default="full", help="or small")
    result.add_argument("--steps", type=int, help="of each (the model's)")
    result.add_argument("--at-once", type=int, default=10)
    return result


def main():
    arguments = parse(parser(), MODELS, WAYS)
    lab = Lab(arguments)
    queue = collections.deque(Wanted(model, way) for way in arguments.ways
                              for model in arguments.models)
    report = about("figures/gpu/zoo/measure.py", arguments.commit)
    report["at_once"] = arguments.at_once
    report["not_begun"] = []
    report["figures"] = {}

    def write():
        report["not_begun"] = [f"{each.model} {each.way}" for each in queue]
        (arguments.out / "zoo.json").write_text(
            json.dumps(report, indent=1) + "\n", encoding="utf-8")

    def note(wanted, figures, again):
        if again:
            queue.append(again)
        of_model = report["figures"].setdefault(wanted.model, {})
        of_model[wanted.way] = figures
        compare(of_model)
        said = {key: value for key, value in figures.items()
                if key not in ("losses", "mets", "sha256", "first_error")}
        print(f"{lab.seconds():4.0f} s {wanted.model} {wanted.way}: {said}",
              flush=True)
        write()

    measure(lab, queue, note)
    wrong = [f"{model} {way}" for model in arguments.models
             for way in arguments.ways
             if not report["figures"].get(model, {}).get(way, {}).get("falls")]
    if wrong:
        sys.exit(f"no loss that falls: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
