"""Processes share memory read-only: what they see, what it costs, who keeps it."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import harness

MIB = harness.MIB
POOL = 96 * MIB


class Sharer:
    """A mets_sharer, in a job of its own."""

    def __init__(self, run_dir, job):
        self.process = subprocess.Popen(
            [harness.BIN / "mets_sharer"], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, METS_RUN_DIR=str(run_dir), METS_JOB=job))

    def ask(self, *words):
        """The answer to a command; "" when the process has ended."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        return self.end()

    def end(self):
        """Waits for its end; returns what it said to people."""
        return self.process.communicate(timeout=30)[1]


class Shares(unittest.TestCase):
    def setUp(self):
        self.daemon = self.enterContext(harness.Daemon(POOL, 64 * MIB))
        self.sharers = []

    def tearDown(self):
        for sharer in self.sharers:
            sharer.kill()

    def sharer(self, job, run_dir=None):
        sharer = Sharer(run_dir or self.daemon.run_dir, job)
        self.sharers.append(sharer)
        return sharer

    def shares(self):
        return json.loads(self.daemon.ctl("shares", "--json").stdout)["shares"]

    def await_free(self, size):
        harness.wait_for(lambda: self.daemon.device()["free_bytes"] == size, 2,
                         f"{size} bytes are free: {self.daemon.status()}")

    def error(self, code, text, answer):
        self.assertTrue(answer.startswith(f"error {code} "), answer)
        self.assertIn(text, answer)

    def test_three_processes_read_one_copy(self):
        a, b, c = (self.sharer(job) for job in "abc")
        self.assertEqual(a.ask("publish w 32 7 c1"), f"ok {32 * MIB}")
        for other in (b, c):
            self.assertEqual(other.ask("attach w c1", 32 * MIB),
                             f"ok {32 * MIB}")
            self.assertEqual(other.ask("check w 7"), "ok")
        device = self.daemon.device()
        self.assertEqual(device["resident_bytes"], 32 * MIB)
        self.assertEqual(device["shared_bytes"], 32 * MIB)
        self.assertEqual(self.daemon.job("a")["resident_bytes"], 32 * MIB)
        self.assertEqual(self.daemon.job("b")["resident_bytes"], 0)
        share, = self.shares()
        self.assertEqual((share["name"], share["jobs"], share["payer"]),
                         ("w", ["a", "b", "c"], "a"))
        if os.geteuid() == 0:
            pids = [s.process.pid for s in self.sharers]
            self.assertEqual(harness.memory_bytes(
                [self.daemon.process.pid, *pids], "mets-chunk"), 32 * MIB)
        self.assertEqual(a.ask("check w 7"), "ok")

    def test_it_lives_until_the_last_holder_is_killed(self):
        a, b, c = (self.sharer(job) for job in "abc")
        a.ask("publish w 32 7")
        b.ask("attach w")
        a.kill()
        harness.wait_for(lambda: self.shares()[0]["payer"] == "b", 2, "b pays")
        self.assertEqual(b.ask("check w 7"), "ok")
        # Nobody gets its memory, and nothing of it leaves.
        self.error(2, "MiB", c.ask("hold 65 0"))
        self.assertEqual(c.ask("attach w"), f"ok {32 * MIB}")
        self.assertEqual(b.ask("detach w"), "ok")
        self.assertEqual(c.ask("check w 7"), "ok")
        c.kill()
        self.await_free(POOL)
        self.assertEqual(self.shares(), [])
        self.error(8, "no share 'w'", b.ask("attach w"))
        self.assertEqual(b.ask("publish w 16 8"), f"ok {16 * MIB}")

    def test_a_write_ends_the_process_with_a_line(self):
        a, b = self.sharer("a"), self.sharer("b")
        a.ask("publish w 8 7")
        b.ask("attach w")
        for writer in (b, a):
            self.assertEqual(writer.ask("write w"), "")
            self.assertIn("a write to share 'w', which is read-only",
                          writer.end())
            self.assertEqual(writer.process.returncode, -signal.SIGSEGV)
            if writer is b:
                self.assertEqual(a.ask("check w 7"), "ok")
        self.await_free(POOL)

    def test_errors(self):
        a, b = self.sharer("a"), self.sharer("b")
        a.ask("publish w 8 7 c1")
        self.error(9, "exists on host0", b.ask("publish w 8 1"))
        self.error(9, "already", a.ask("attach w"))
        self.error(5, "c1", b.ask("attach w c2"))
        self.error(5, f"{8 * MIB} bytes, not 5", b.ask("attach w c1 5"))
        self.error(1, "share name 'a/b'", b.ask("publish a/b 8 1"))
        self.error(1, "1 to 63 characters", b.ask("attach", "x" * 64))
        self.error(8, "nobody has published", b.ask("attach other"))
        self.assertEqual(b.ask("attach w c1"), f"ok {8 * MIB}")
        # What was not published is an ordinary buffer again, and freed.
        harness.wait_for(lambda: self.daemon.device()["resident_bytes"]
                         == 8 * MIB, 2, f"one share: {self.daemon.status()}")

    def test_shares_outlive_a_restart_of_metsd(self):
        a, b = self.sharer("a"), self.sharer("b")
        a.ask("publish w 32 7")
        b.ask("attach w")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(b.ask("hold 8"), "ok")  # It is back.
        self.assertEqual(a.ask("hold 8"), "ok")
        device = self.daemon.device()
        self.assertEqual(device["shared_bytes"], 32 * MIB)
        self.assertEqual(device["resident_bytes"], 48 * MIB)
        for sharer in (a, b):
            self.assertEqual(sharer.ask("check w 7"), "ok")
        c = self.sharer("c")
        self.error(8, "before a restart", c.ask("attach w"))
        self.assertEqual(c.ask("publish w 16 9"), f"ok {16 * MIB}")
        a.kill()
        self.assertEqual(b.ask("check w 7"), "ok")
        b.ask("detach w")
        harness.wait_for(lambda: self.daemon.device()["shared_bytes"]
                         == 16 * MIB, 2, "the old share is gone")


class OtherDomain(unittest.TestCase):
    def test_nothing_of_it_is_seen(self):
        with tempfile.TemporaryDirectory(prefix="mets-") as tenant:
            config = pathlib.Path(tenant, "metsd.toml")
            config.write_text(f'[[listener]]\ndir = "{tenant}"\n'
                              'domain = "tenant"\n')
            with harness.Daemon(POOL, 64 * MIB, "--config", config) as daemon:
                a, b = Sharer(daemon.run_dir, "a"), Sharer(tenant, "b")
                a.ask("publish w 8 7")
                answer = b.ask("attach w")
                self.assertIn("error 8 no share 'w'", answer)
                self.assertIn("same user", answer)
                self.assertEqual(b.ask("publish w 8 9"), f"ok {8 * MIB}")
                self.assertEqual(a.ask("check w 7"), "ok")
                for sharer in (a, b):
                    sharer.kill()


if __name__ == "__main__":
    unittest.main(verbosity=2)
