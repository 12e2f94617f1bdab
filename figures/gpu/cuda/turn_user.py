"""A job that takes turns, for measure.py's `turns`: NUMBER STEPS GIB SECONDS.

Each step takes GIB of fresh buffers, fills them with a value of its own, reads
all of them back, and lasts SECONDS. It waits for a line on stdin before the
first, and prints JSON in the end: `turns`, [begin, end] of each step in seconds
of the monotonic clock (the GPU is idle at both), and `wrong`, how many 4-byte
words were not what had been written.
"""

import json
import sys
import time

import mets.torch

mets.torch.enable(required=True)
import torch  # noqa: E402  (after METS, before anything is on the GPU)

WORDS = 1 << 27  # Of a buffer: 512 MiB.


def turn(value, buffers, seconds):
    with mets.torch.step():
        begin = time.monotonic()
        held = [torch.empty(WORDS, dtype=torch.int32, device="cuda")
                for _ in range(buffers)]
        for buffer in held:
            buffer.fill_(value)
        wrong = sum(int(torch.count_nonzero(buffer - value))
                    for buffer in held)
        time.sleep(max(0, begin + seconds - time.monotonic()))
        del held
        end = time.monotonic()
    return [begin, end], wrong


def main():
    number, steps, gib, seconds = map(float, sys.argv[1:])
    for i in range(3):
        turn(i, int(2 * gib), 0)
    print("ready", flush=True)
    sys.stdin.readline()
    done = [turn(int(2 * i + number), int(2 * gib), seconds)
            for i in range(int(steps))]
    print(json.dumps({"turns": [times for times, _ in done],
                      "wrong": sum(wrong for _, wrong in done)}), flush=True)


main()
