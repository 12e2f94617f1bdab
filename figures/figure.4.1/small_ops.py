"""How long an op on eight numbers takes in a graph of such ops, which follow one
another in one thread: prints "ready", and for each line of standard input the
nanoseconds of an op in the fastest of ROUNDS rounds."""

import sys
import time

import tensorflow as tf

OPS, CALLS, ROUNDS = 2000, 5, 200


@tf.function
def chain(x):
    for _ in range(OPS):
        x = tf.raw_ops.Neg(x=x)
    return x


def nanoseconds(x):
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        chain(x)
    return (time.perf_counter_ns() - begin) / (CALLS * OPS)


def main():
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    # It would leave nothing of the chain.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    x = tf.ones([8])
    chain(x)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(min(nanoseconds(x) for _ in range(ROUNDS)), flush=True)


if __name__ == "__main__":
    main()
