"""metsctl top in a terminal: it lives, sorts, filters, resizes and ends."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

HOG = harness.BIN / "mets_hog"
MIB = harness.MIB


class Terminal:
    """A program in a tmux of its own."""

    def __init__(self, command, width, height):
        self._dir = tempfile.TemporaryDirectory(prefix="mets-tmux-")
        self._tmux = ["tmux", "-S", os.path.join(self._dir.name, "socket"),
                      "-f", "/dev/null"]
        self("new-session", "-d", "-x", str(width), "-y", str(height),
             *map(str, command))
        self("set-option", "-g", "remain-on-exit", "on")
        self("set-option", "-g", "status", "off")

    def __call__(self, *args):
        return subprocess.run(
            [*self._tmux, *args], check=True, text=True, timeout=20,
            stdout=subprocess.PIPE,
            env=dict(os.environ, TERM="screen-256color", LC_ALL="C.UTF-8")).stdout

    def text(self):
        return self("capture-pane", "-p")

    def keys(self, *keys):
        self("send-keys", *keys)

    def size(self, width, height):
        self("resize-window", "-x", str(width), "-y", str(height))

    def wait(self, what, *words, without=()):
        harness.wait_for(
            lambda: all(w in self.text() for w in words)
            and not any(w in self.text() for w in without), 20,
            f"{what}: {self.text()}")

    def dead(self):
        """Whether the program has ended."""
        return self("display-message", "-p", "#{pane_dead}").strip() == "1"

    def close(self):
        subprocess.run([*self._tmux, "kill-server"], timeout=20,
                       stderr=subprocess.DEVNULL)
        self._dir.cleanup()


class Top(unittest.TestCase):
    def setUp(self):
        if shutil.which("tmux") is None:
            self.skipTest("tmux is not installed (deploy/setup.sh installs it)")
        self.daemon = harness.Daemon(256 * MIB)
        self.daemon.__enter__()
        self.addCleanup(self.daemon.__exit__)

    def hold(self, name, mib):
        job = self.daemon.run(name, [HOG, "--mib", mib, "--buffers", 2,
                                     "--pause"])
        self.addCleanup(lambda: (job.kill(), job.wait()))
        harness.wait_for(lambda: "filled" in harness.text_of(job), 20, name)
        return job

    def top(self, width=132, height=30):
        terminal = Terminal(
            [harness.BIN / "metsctl", "--run-dir", self.daemon.run_dir, "top",
             "--seconds", "0.2"], width, height)
        self.addCleanup(terminal.close)
        return terminal

    @staticmethod
    def await_order(terminal, *names):
        """Until the jobs' rows have these names, from the top."""
        harness.wait_for(
            lambda: re.findall(r"^. (\S+) +host0 ", terminal.text(), re.M)
            == list(names), 20, f"{names}: {terminal.text()}")

    def test_a_session(self):
        self.hold("bert", 60)
        self.hold("resnet", 20)
        terminal = self.top()
        terminal.wait("both jobs", "bert", "60 MiB", "resnet", "20 MiB",
                      "2 jobs", "RESIDENTv", "STEP")
        self.await_order(terminal, "bert", "resnet")
        # The bar has a quarter of the pool for bert, in its letter.
        terminal.wait("a whole bar", "]")
        letters = re.search(r"^host0 +\[(.*)\]$", terminal.text(), re.M)[1]
        self.assertEqual(len(letters), 120)
        self.assertAlmostEqual(letters.count(letters[0]), 28, delta=1)

        terminal.keys("r")
        terminal.wait("the other way", "RESIDENT^")
        self.await_order(terminal, "resnet", "bert")
        terminal.keys("<", "<", "<")
        terminal.wait("sorted by name", "JOB^")
        self.await_order(terminal, "bert", "resnet")

        terminal.keys("/")
        terminal.wait("a prompt", "filter: _")
        terminal.keys("res", "Enter")
        terminal.wait("one job", "1 of 2 jobs (filter: res)", "q quit")
        self.await_order(terminal, "resnet")
        terminal.keys("Escape")
        terminal.wait("both again", "2 jobs", without=["filter: res"])

        terminal.size(60, 12)
        terminal.wait("fewer columns", "STATE", without=["STEP", "PINNED"])
        self.assertIn("bert", terminal.text())
        terminal.size(150, 40)
        terminal.wait("all columns", "STEP", "PINNED")

        third = self.hold("gpt", 10)
        terminal.wait("a job that comes", "gpt", "3 jobs")
        third.kill()
        terminal.wait("and goes", without=["10 MiB"])
        terminal.keys("q")
        harness.wait_for(terminal.dead, 20, "it ends")

    def test_a_daemon_that_ends_is_said_to_have(self):
        self.hold("bert", 60)
        terminal = self.top()
        terminal.wait("the job", "bert")
        self.daemon.kill()
        terminal.wait("it is gone", "metsd does not answer")
        self.daemon.start()
        terminal.wait("it is back", without=["metsd does not answer"])
        terminal.keys("q")
        harness.wait_for(terminal.dead, 20, "it ends")

    def test_without_a_terminal_it_is_printed_once(self):
        self.hold("bert", 60)
        text = self.daemon.ctl("top", "--seconds", "0.1").stdout
        self.assertIn("bert", text)
        self.assertIn("60 MiB of 256 MiB resident", text)
        self.assertNotIn("\x1b", text)
        filtered = self.daemon.ctl("top", "--once", "--seconds", "0.1",
                                   "--filter", "other").stdout
        self.assertNotIn("bert", filtered)


if __name__ == "__main__":
    unittest.main(verbosity=2)
