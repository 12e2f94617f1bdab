"""What metsctl says about metsd's decisions is what happened."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import harness

HOG = harness.BIN / "mets_hog"
STEPPER = harness.BIN / "mets_stepper"
MIB = harness.MIB
POOL = 64 * MIB


def events(daemon, *options):
    out = daemon.ctl("events", "--json", "--newest", "100000", *options).stdout
    return [json.loads(line) for line in out.splitlines()]


def of_kind(all_events, kind):
    return [e for e in all_events if e["kind"] == kind]


class Decisions(unittest.TestCase):
    def start(self, *flags, swap=256 * MIB):
        daemon = harness.Daemon(POOL, swap, *flags)
        daemon.__enter__()
        self.addCleanup(daemon.__exit__)
        return daemon

    def hold(self, daemon, name, mib, *options):
        """A job that has filled so much and then waits."""
        job = daemon.run(name, [HOG, "--mib", mib, "--pause", *options])
        self.addCleanup(lambda: (job.kill(), job.wait()))
        harness.wait_for(lambda: "filled" in harness.text_of(job), 20, name)
        return job

    def test_every_byte_that_left_or_came_back_is_in_an_event(self):
        daemon = self.start()
        jobs = [self.hold(daemon, name, 48, "--rounds", 60)
                for name in ("bert", "resnet")]
        for job in jobs:  # Both are there before either goes on.
            job.stdin.write("\n")
            job.stdin.flush()
        for job in jobs:
            harness.finish(job)
        seen = events(daemon)
        for name in ("bert", "resnet"):
            job = daemon.job(name)
            evicted = [e for e in of_kind(seen, "evicted") if e["job"] == name]
            self.assertEqual(sum(e["count"] for e in evicted),
                             job["evictions_total"])
            self.assertEqual(sum(e["copied_bytes"] for e in evicted),
                             job["evicted_bytes_total"])
            self.assertTrue(evicted)
            own = events(daemon, "--job", name)
            self.assertTrue(all(name in (e["job"], e["for_job"])
                                or not e["job"] for e in own))
        for e in of_kind(seen, "evicted"):
            self.assertIn(e["for_job"], ("bert", "resnet"))
            self.assertGreater(e["took_seconds"], 0)
            self.assertIn(f"of '{e['job']}'", e["text"])
        numbers = [e["number"] for e in seen]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertEqual(len(of_kind(seen, "attached")), 2)
        self.assertEqual(len(of_kind(seen, "ended")), 2)

    def test_followers_hear_of_what_comes_and_stop_when_told_to(self):
        daemon = self.start()
        follower = subprocess.Popen(
            [harness.BIN / "metsctl", "--run-dir", daemon.run_dir, "events",
             "--follow", "--newest", "0"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(follower.stdout.close)
        # Jobs come until the follower is there to hear of one.
        os.set_blocking(follower.stdout.fileno(), False)
        heard = ""

        def hears():
            nonlocal heard
            harness.finish(daemon.run("gpt", [HOG, "--mib", 1, "--rounds", 1]))
            heard += follower.stdout.read() or ""
            return "a process of 'gpt' has ended" in heard

        harness.wait_for(hears, 30, "an event arrives")
        follower.send_signal(signal.SIGINT)
        self.assertEqual(follower.wait(timeout=20), 0)

    def test_one_text_in_the_error_the_log_and_the_event(self):
        daemon = self.start(swap=0)
        self.hold(daemon, "holder", 60)
        job = daemon.run("asker", [HOG, "--mib", 16, "--buffers", 1],
                         METS_WAIT="500ms")
        self.assertEqual(job.wait(timeout=30), 1)
        denied = of_kind(events(daemon, "--job", "asker"), "denied")
        self.assertEqual(len(denied), 1)
        reason = denied[0]["reason"]
        for part in ("16 MiB on host0 for job 'asker'", "Swap space: 0 B of 0 B",
                     "Holders:\n  job 'holder': 60 MiB resident", "Tried: ",
                     "Advice: "):
            self.assertIn(part, reason)
        self.assertIn(reason, harness.text_of(job))
        log = pathlib.Path(daemon.run_dir, "metsd.log")
        harness.wait_for(lambda: reason in log.read_text(), 10, "it is logged")
        self.assertIn(reason.splitlines()[-1], daemon.ctl("why", "asker").stdout)

    def test_why_names_what_a_waiting_job_waits_for(self):
        daemon = self.start(swap=0)
        holder = self.hold(daemon, "holder", 60)
        waiter = daemon.run("waiter", [HOG, "--mib", 16, "--buffers", 1,
                                       "--rounds", 1], METS_WAIT="forever")
        self.addCleanup(lambda: (waiter.kill(), waiter.wait()))

        def why():
            return json.loads(daemon.ctl("why", "waiter", "--json",
                                         check=False).stdout or "{}")

        harness.wait_for(
            lambda: why().get("answers", [{}])[0].get("phase")
            == "waits_for_memory", 20, f"it waits: {why()}")
        answer = why()["answers"][0]
        self.assertIn("waits for 16 MiB", answer["summary"])
        self.assertIn("job 'holder': 60 MiB resident", answer["report"])
        self.assertIn("swap space is full (limit 0 B)", answer["report"])
        self.assertEqual(daemon.job("waiter")["phase"], "waits_for_memory")
        holder.kill()
        harness.finish(waiter)
        done = daemon.ctl("why", "waiter")
        self.assertIn("granted 16 MiB to 'waiter' after", done.stdout)

    def test_why_says_whose_turn_it_is(self):
        daemon = self.start()
        needs = ["--persistent-mib", 1, "--ephemeral-mib", 58, "--layers", 29,
                 "--hints", "--steps", 100000, "--compute-us", 500]
        jobs = [daemon.run(name, [STEPPER, *needs]) for name in "ab"]
        self.addCleanup(lambda: [(j.kill(), j.wait()) for j in jobs])

        def answer():
            for name in "ab":
                text = daemon.ctl("why", name, check=False).stdout
                if "waits for its turn" in text:
                    return text
            return ""

        text = ""

        def found():
            nonlocal text
            text = answer()
            return "has the device since" in text and "of a pool of" in text

        harness.wait_for(found, 60, "one waits for the other's turn")
        self.assertIn("What would help:", text)
        self.assertTrue(of_kind(events(daemon), "mode_changed"))
        harness.wait_for(
            lambda: of_kind(events(daemon, "--details"), "turn"), 60, "a turn")
        self.assertFalse(of_kind(events(daemon), "turn"))

    def test_a_trace_opens_in_viewers_of_chromes_format(self):
        daemon = self.start()
        needs = ["--persistent-mib", 1, "--ephemeral-mib", 58, "--layers", 29,
                 "--hints", "--steps", 100000, "--compute-us", 500]
        jobs = [daemon.run(name, [STEPPER, *needs]) for name in "ab"]
        self.addCleanup(lambda: [(j.kill(), j.wait()) for j in jobs])
        harness.wait_for(
            lambda: daemon.device()["turns_total"] > 0, 60, "they take turns")
        file = pathlib.Path(daemon.run_dir, "a.json")
        daemon.ctl("trace", "a", str(file), "--seconds", "2", "--past")
        trace = json.loads(file.read_text())["traceEvents"]
        names = {e["name"] for e in trace}
        for name in ("process_name", "thread_name", "has the device",
                     "memory on host0"):
            self.assertIn(name, names)
        for e in trace:
            self.assertIn(e["ph"], "XMCi")
            self.assertTrue({"name", "pid", "tid"} <= e.keys())
            if e["ph"] != "M":
                self.assertGreaterEqual(e["ts"], 0)
            if e["ph"] == "X":
                self.assertGreaterEqual(e["dur"], 0)
        threads = {e["tid"] for e in trace if e["ph"] == "X"}
        named = {e["tid"] for e in trace if e["name"] == "thread_name"}
        self.assertEqual(threads, named)
        done = daemon.ctl("trace", "nobody", str(file), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(file.read_text())["traceEvents"], trace)

    def test_a_trace_ends_with_its_job(self):
        daemon = self.start()
        job = daemon.run("a", [STEPPER, "--hints", "--steps", 100000])
        self.addCleanup(lambda: (job.kill(), job.wait()))
        harness.wait_for(lambda: (found := daemon.job("a"))
                         and found["resident_bytes"] > 0, 60, "it has memory")
        file = pathlib.Path(daemon.run_dir, "a.json")
        metsctl = [harness.BIN / "metsctl", "--run-dir", daemon.run_dir]
        trace = subprocess.Popen([*metsctl, "trace", "a", file],
                                 stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        job.kill()
        said, _ = trace.communicate(timeout=30)
        self.assertIn("events; open it at", said)
        # Of a job that has ended, what the log has.
        daemon.ctl("trace", "a", str(file))
        names = {e["name"] for e in
                 json.loads(file.read_text())["traceEvents"]}
        self.assertIn("process_name", names)

    def test_unknown_jobs_are_said_to_be_so(self):
        daemon = self.start()
        done = daemon.ctl("why", "nobody", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no job 'nobody' is known", done.stderr)
        done = daemon.ctl("why", "no/name", check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
