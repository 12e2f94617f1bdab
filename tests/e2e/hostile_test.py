"""Hostile clients and careless operators: metsd goes on serving the others."""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import unittest

import harness
import raw_client

HOG = harness.BIN / "mets_hog"
MIB = harness.MIB
USER = 12345
DESCRIPTORS = 600
# As that user; connects and says nothing, more often than metsd has descriptors.
FLOOD = f"""
import grp, os, resource, socket, sys
os.setgroups([])
os.setgid(grp.getgrnam("users").gr_gid)
os.setuid({USER})
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
kept = []
for name, kind in (("session", socket.SOCK_STREAM), ("fd", socket.SOCK_SEQPACKET)):
    for _ in range({DESCRIPTORS + 200}):
        kept.append(socket.socket(socket.AF_UNIX, kind))
        kept[-1].settimeout(5)
        try: kept[-1].connect(f"{{sys.argv[1]}}/{{name}}.sock")
        except (TimeoutError, BlockingIOError): break
print("flooded", flush=True)
sys.stdin.read()
"""


class FewDescriptors(harness.Daemon):
    def _spawn(self, command, out):
        limit = (DESCRIPTORS, DESCRIPTORS)
        return subprocess.Popen(
            command, stdout=out, stderr=out,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit))


class Hostile(unittest.TestCase):
    def serve(self, kind=harness.Daemon, *flags):
        daemon = kind(64 * MIB, 128 * MIB, *flags)
        daemon.__enter__()
        self.addCleanup(daemon.__exit__)
        return daemon

    def assert_serving(self, daemon):
        harness.finish(daemon.run("good", [HOG, "--mib", 8, "--rounds", 3]))
        self.assertEqual(daemon.status()["devices"][0]["id"], "host0")

    @unittest.skipUnless(os.getuid() == 0, "needs root to become another user")
    def test_connections_of_one_user_keep_no_other_out(self):
        daemon = self.serve(FewDescriptors, "--socket-group", "users")
        os.chmod(daemon.run_dir, 0o755)
        with subprocess.Popen(
                [sys.executable, "-c", FLOOD, daemon.run_dir],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True) as flood:
            self.assertEqual(flood.stdout.readline(), "flooded\n")
            self.assert_serving(daemon)
            flood.communicate()
        # And the user itself is served again.
        subprocess.run([HOG, "--mib", "8", "--rounds", "3"], user=USER,
                       group="users", extra_groups=[], check=True, timeout=60,
                       stdout=subprocess.DEVNULL,
                       env=dict(os.environ, METS_RUN_DIR=daemon.run_dir))

    def test_who_has_too_many_connections_is_told(self):
        daemon = self.serve(FewDescriptors)
        most = DESCRIPTORS // 4
        with contextlib.ExitStack() as stack:
            for name in ("session", "admin"):
                for _ in range(most):
                    connection = stack.enter_context(
                        socket.socket(socket.AF_UNIX))
                    connection.connect(f"{daemon.run_dir}/{name}.sock")
            job = daemon.run("late", [HOG, "--mib", 8], METS_REQUIRED="1")
            self.assertNotEqual(job.wait(timeout=60), 0)
            self.assertIn(f"user {os.getuid()} has {most} connections, which is "
                          "the most that metsd allows", harness.text_of(job))
            self.assertIn("has as many connections to admin.sock as metsd lets",
                          daemon.ctl("status", check=False).stderr)
        self.assert_serving(daemon)

    def test_a_descriptor_famine_passes(self):
        daemon = self.serve(FewDescriptors)
        with contextlib.ExitStack() as stack:
            for _ in range(DESCRIPTORS + 100):
                # More than one user's share, and than there are.
                for name in ("session", "admin"):
                    connection = stack.enter_context(
                        socket.socket(socket.AF_UNIX))
                    connection.connect(f"{daemon.run_dir}/{name}.sock")
        self.assert_serving(daemon)

    def test_what_clients_send_is_no_line_of_the_log(self):
        daemon = self.serve()
        forged = "\n2026-01-01T00:00:00.000 metsd info: forged \033[31m"
        # What gRPC, protobuf and metsd cannot read.
        stream = raw_client.Stream(
            daemon.run_dir, raw_client.header(b"grpc-timeout", forged.encode()),
            raw_client.header(b":status", forged.encode()))
        stream.close()
        for job in (b"\xff\xfe", forged):
            fd_socket, token = raw_client.token(daemon.run_dir)
            stream = raw_client.Stream(daemon.run_dir)
            stream.say(raw_client.text(1, raw_client.text(1, token)
                                       + raw_client.number(2, 1)
                                       + raw_client.text(3, job)))
            stream.wait_for(b"grpc-status")
            stream.close()
            fd_socket.close()
        fd_socket, token = raw_client.token(daemon.run_dir)
        stream = raw_client.Stream(daemon.run_dir)
        stream.say(raw_client.text(1, raw_client.text(1, token)
                                   + raw_client.number(2, 1)
                                   + raw_client.text(3, "a")
                                   + raw_client.number(8, 1)))
        stream.say(raw_client.text(3, raw_client.text(1, "host0")))
        stream.say(raw_client.text(2, raw_client.text(1, forged)))
        stream.wait_for(b"device name")
        stream.close()
        fd_socket.close()
        self.assert_serving(daemon)
        daemon.process.terminate()
        daemon.process.wait(timeout=20)
        for line in daemon.log().splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT[\d:.]+ metsd \w+: ")
            self.assertNotIn("forged", line)

    def test_removed_sockets_are_there_again(self):
        daemon = self.serve()
        job = daemon.run("a", [HOG, "--mib", 48])
        harness.wait_for(lambda: "filled" in harness.text_of(job), 20, "filled")
        folder = pathlib.Path(daemon.run_dir)
        sockets = [folder / f"{name}.sock" for name in ("fd", "session", "admin")]
        log = open(folder / "metsd.log")  # It goes, too.
        self.addCleanup(log.close)

        def remove_folder():
            # At once: metsd may put the first socket back before the last goes.
            shutil.rmtree(folder.rename(f"{folder}-removed"))

        for remove in (*(path.unlink for path in sockets), remove_folder):
            remove()
            harness.wait_for(lambda: all(map(pathlib.Path.exists, sockets)), 10,
                             "they are there again")
            self.assert_serving(daemon)
        harness.wait_for((folder / "state.json").exists, 10, "and the state is")
        for path in sockets:
            log.seek(0)
            said = re.findall(f".*{path}.*", log.read())
            self.assertEqual(["somebody has removed" in line
                              for line in said if "ready" not in line],
                             [True, False] * 2)
        self.assertIsNone(job.poll(), harness.text_of(job))
        job.kill()
        job.wait()

    def test_a_stopped_metsd_is_told_of_and_goes_on(self):
        daemon = self.serve()
        jobs = [daemon.run(name, [HOG, "--mib", 48]) for name in "ab"]
        for job in jobs:
            harness.wait_for(lambda: "filled" in harness.text_of(job), 20, "fill")
        daemon.process.send_signal(signal.SIGSTOP)
        said = daemon.ctl("status", check=False)
        daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(said.returncode, 1)
        self.assertIn("metsd does not answer", said.stderr)
        self.assert_serving(daemon)
        for name in "ab":
            before = daemon.job(name)["restored_bytes_total"]
            harness.wait_for(
                lambda: daemon.job(name)["restored_bytes_total"] > before, 60,
                "they take turns")
        for job in jobs:
            self.assertIsNone(job.poll(), harness.text_of(job))
            job.kill()
            job.wait()


if __name__ == "__main__":
    unittest.main(verbosity=2)
