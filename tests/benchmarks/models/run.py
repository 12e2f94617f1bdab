"""Trains a model of the zoo and says how it went; README.md has more.

    python run.py --model NAME [--size small|full] [--batch N] [--steps N]
        [--device cpu|mets|GPU INDEX] [--profile A,B] [--json FILE]
"""

import argparse
import ast
import hashlib
import json
import os
import pathlib
import platform
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tf_allocator" / "python"))
import mets_stats

# Keras imports these where they are, which takes seconds.
sys.modules.update(sklearn=None, matplotlib=None)

SEED = 20
BATCHES = 4  # As many different ones are made; then they come again.


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--size", choices=["small", "full"], default="full")
    parser.add_argument("--batch", type=int, help="default: the model's")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=N",
                        help="another size of the model, such as side=64")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=2,
                        help="of these, so many are not in the times")
    parser.add_argument("--device", default="cpu",
                        help="cpu, mets or a GPU's index")
    parser.add_argument("--memory", type=int, metavar="BYTES",
                        help="what stock TensorFlow may have on the device")
    parser.add_argument("--threads", type=int, default=0,
                        help="that one op uses; 0: TensorFlow's default")
    parser.add_argument("--parallel-ops", type=int, default=0,
                        help="that run at a time; 0: TensorFlow's default")
    parser.add_argument("--profile", metavar="A,B",
                        help="records these steps, the first is 1")
    parser.add_argument("--profile-dir", default="profile")
    parser.add_argument("--not-deterministic", action="store_true",
                        help="takes ops that give other bits each time, too")
    parser.add_argument("--meet", action="append", type=int, default=[],
                        metavar="STEP",
                        help="waits for a line on stdin before it")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args(words)


def choose_device(args):
    """What the environment must say before TensorFlow is imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if args.device == "mets":
        if args.memory:
            sys.exit("--memory is for stock TensorFlow; METS_LIMIT bounds METS")
        if "TF_PLUGGABLE_DEVICE_LIBRARY_PATH" not in os.environ:
            sys.exit("--device mets is for programs under `metsctl run`")
        os.environ["METS_REQUIRED"] = "1"
    elif args.device == "cpu":
        os.environ["METS_DISABLE"] = "1"
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        if args.memory:
            os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
            os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(args.memory >> 20)
    elif args.device.isdigit():
        os.environ["CUDA_VISIBLE_DEVICES"] = args.device
        os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    else:
        sys.exit("--device takes cpu, mets or a GPU's index")


def set_up(tf, args):
    tf.keras.utils.set_random_seed(SEED)
    if not args.not_deterministic:
        tf.config.experimental.enable_op_determinism()
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(args.parallel_ops)
    if args.device.isdigit():
        gpu, = tf.config.list_physical_devices("GPU")
        if args.memory:
            tf.config.set_logical_device_configuration(gpu, [
                tf.config.LogicalDeviceConfiguration(args.memory >> 20)])


def make_step(tf, task):
    optimizer = tf.keras.optimizers.Adam(task.learning_rate)
    variables = task.model.trainable_variables
    optimizer.build(variables)

    @tf.function(jit_compile=False)
    def step(batches):
        inputs, targets = next(batches)
        with tf.GradientTape() as tape:
            loss = task.loss(task.model(inputs, training=True), targets)
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return step


def batches_of(tf, task, batch):
    """The rows again and again, in an order that is the same each time."""
    with tf.device("CPU:0"):
        rows = tf.nest.map_structure(tf.constant, (task.inputs, task.targets))
    count = len(tf.nest.flatten(rows)[0])

    # Putting it together row by row can take longer than a step.
    def batch_from(first):
        return tf.nest.map_structure(lambda array: array[first:first + batch],
                                     rows)

    data = tf.data.Dataset.range(0, count, batch).map(batch_from)
    return iter(data.repeat().prefetch(1))


def digest(model):
    """Of all weights, in order."""
    sha = hashlib.sha256()
    for weight in model.get_weights():
        sha.update(weight.tobytes())
    return sha.hexdigest()


def peak_bytes(tf, args):
    """What the tensors took at most, where the allocator counts."""
    device = "GPU:0" if args.device.isdigit() else "CPU:0"
    if args.device == "cpu" and not args.memory:
        return None
    return tf.config.experimental.get_memory_info(device)["peak"]


def state(task):
    """What METS has counted, and what it must not change."""
    return {"mets": mets_stats.read(), "weights_sha256": digest(task.model)}


def train(tf, args, task, batch):
    """Takes the steps; gives losses, seconds, and the states before those of
    --meet."""
    step, batches = make_step(tf, task), batches_of(tf, task, batch)
    first, last = map(int, (args.profile or "0,0").split(","))
    losses, seconds, met = [], [], {}
    for i in range(1, args.steps + 1):
        if i in args.meet:
            met[i] = state(task)
            print("ready", flush=True)
            sys.stdin.readline()
        if i == first:
            tf.profiler.experimental.start(args.profile_dir)
        begin = time.perf_counter()
        loss = float(step(batches))
        seconds.append(time.perf_counter() - begin)
        losses.append(loss)
        if i == last:
            tf.profiler.experimental.stop()
        print(f"step {i}/{args.steps} loss {loss:.6f} {seconds[-1]:.3f} s",
              flush=True)
    return losses, seconds, met


def report(tf, args, task, batch, losses, seconds, met):
    steady = seconds[args.warm_up:] or seconds
    return {
        "model": args.model, "size": args.size, "batch": batch,
        "set": args.set, "steps": args.steps, "device": args.device,
        "parameters": sum(w.size for w in task.model.get_weights()),
        "losses": losses, "losses_hex": [loss.hex() for loss in losses],
        **state(task), "met": met,
        "step_seconds": seconds,
        "steady_seconds": {"min": min(steady),
                           "median": statistics.median(steady),
                           "max": max(steady)},
        "seconds": sum(seconds),
        "peak_bytes": peak_bytes(tf, args),
        "versions": {"python": platform.python_version(),
                     "tensorflow": tf.__version__,
                     "keras": tf.keras.__version__},
    }


def main():
    args = parse()
    choose_device(args)
    import tensorflow as tf
    import zoo
    if args.model not in zoo.MODELS:
        sys.exit(f"--model takes one of {', '.join(zoo.MODELS)}")
    set_up(tf, args)
    sizes = {key: ast.literal_eval(value)
             for key, value in (word.split("=") for word in args.set)}
    task, batch = zoo.make(args.model, BATCHES, args.size, args.batch, **sizes)
    result = report(tf, args, task, batch, *train(tf, args, task, batch))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
