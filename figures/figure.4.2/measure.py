"""Counts what metsd's sessions say and hear while their steps repeat; writes
data/traffic.csv.

    measure.py BUILD

Each session is a job (tests/e2e/mets_stepper.cc) whose steps take 4 ops on 4
buffers of 1 MiB, with 100 ms of input work between; all fit. Once all repeat
their steps, metsd's processor time is taken over SECONDS, then strace (which
must be installed) counts the bytes of its messages over SECONDS: gRPC's frames
are in them.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import common
import live

HERE = pathlib.Path(__file__).resolve().parent
SESSIONS = [1, 8, 64]
SETTLE, SECONDS = 6, 5
STEPPER = ["--persistent-mib", "1", "--ephemeral-mib", "4", "--layers", "4",
           "--input-ms", "100", "--steps", "1000000"]
FIELDS = ["sessions", "seconds", "processor_seconds", "sent_messages",
          "sent_bytes", "received_messages", "received_bytes"]
MESSAGE = re.compile(r"(send|recv)msg(?:\(| resumed>).* = (\d+)$", re.MULTILINE)


def processor_seconds(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text("utf-8").split()
    return (int(words[13]) + int(words[14])) / os.sysconf("SC_CLK_TCK")


def messages(pid):
    """What strace has seen of the process for SECONDS."""
    with tempfile.NamedTemporaryFile("r") as file:
        # 124: timeout has ended it.
        done = subprocess.run(
            ["timeout", str(SECONDS), "strace", "-f", "-qq", "-s", "0", "-e",
             "trace=sendmsg,recvmsg", "-o", file.name, "-p", str(pid)],
            check=False)
        if done.returncode != 124:
            sys.exit("strace failed")
        return MESSAGE.findall(file.read())


def measure(build, sessions):
    """The row of the CSV."""
    with live.Metsd(build, "2GiB") as metsd:
        jobs = [subprocess.Popen(
            [build / "bin/mets_stepper", *STEPPER], stdout=subprocess.DEVNULL,
            env=dict(os.environ, METS_RUN_DIR=metsd.run_dir,
                     METS_JOB=f"job-{i}")) for i in range(sessions)]
        try:
            time.sleep(SETTLE)
            before = processor_seconds(metsd.pid)
            time.sleep(SECONDS)
            row = {"sessions": sessions, "seconds": SECONDS,
                   "processor_seconds":
                       round(processor_seconds(metsd.pid) - before, 2)}
            seen = messages(metsd.pid)
            if any(job.poll() is not None for job in jobs):
                sys.exit("a job has ended")
        finally:
            for job in jobs:
                job.kill()
                job.wait()
    for way, name in (("send", "sent"), ("recv", "received")):
        sizes = [int(size) for what, size in seen if what == way]
        row[f"{name}_messages"] = len(sizes)
        row[f"{name}_bytes"] = sum(sizes)
    return row


def main():
    build = pathlib.Path(sys.argv[1])
    common.write_rows(HERE / "data/traffic.csv", FIELDS, (
        measure(build, sessions) for sessions in SESSIONS))
    common.write_meta(HERE / "data/meta.json", "reproduce.sh --measure",
                      stepper=STEPPER)


if __name__ == "__main__":
    main()
