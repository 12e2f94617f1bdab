"""metsd under a real systemd: start, access, reload, watchdog, restarts under
two running trainings, which keep the pool, stop. Needs tests/ops/setup.sh once."""

import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
import containers
import documents
from containers import MODULES, ROOT, text_of, wait_for

UNIT = containers.BUILD / "systemd" / "metsd.service"
CONFIG = "/usr/local/etc/mets/metsd.toml"
POOL = 200 << 20
RESTARTS = 20
SEED = 7
STEPS = {"cnn": 40, "mlp": 120}
USER = {"cnn": "alice", "mlp": "bob"}


@unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
class Unit(unittest.TestCase):
    def test_the_unit_is_hardened(self):
        """Its exposure, by systemd's count, is at most 2.5."""
        said = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", "--no-pager",
             "--threshold=25", UNIT], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.assertEqual(said.returncode, 0, said.stdout[-300:])
        self.assertNotIn("Unknown", said.stdout)


@unittest.skipIf(containers.missing(), containers.missing())
class Systemd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with containers.staged() as context:
            image = containers.build_image(
                "localhost/mets-ops-systemd",
                ROOT / "tests" / "ops" / "Containerfile.systemd", context)
        cls.machine = containers.Container(
            "systemd", image, "--systemd=always", "-v", f"{ROOT}:/opt/mets:ro",
            "-v", f"{MODULES}:/opt/modules:ro", command=["/sbin/init"])
        cls.addClassCleanup(cls.machine.__exit__)
        wait_for(lambda: cls.systemctl("is-system-running", check=False)
                 in ("running", "degraded"), 60, "systemd runs")
        cls.configure()
        cls.systemctl("restart", "metsd")

    @classmethod
    def systemctl(cls, *args, check=True):
        return cls.machine.run("systemctl", *args, check=check).strip()

    @classmethod
    def configure(cls, more=""):
        text = f'device = "host:{POOL}"\nswap-space = "2GiB"\n{more}\n'
        cls.machine.run("sh", "-c", f"cat > {CONFIG} <<'END'\n{text}END")

    @classmethod
    def journal(cls):
        return cls.machine.run("journalctl", "-u", "metsd", "--no-pager")

    @classmethod
    def main_pid(cls):
        return int(cls.systemctl("show", "-P", "MainPID", "metsd"))

    def status(self):
        return json.loads(self.machine.run("metsctl", "status", "--json",
                                           user="olga"))

    def test_1_it_starts_and_says_so(self):
        self.assertEqual(self.systemctl("is-active", "metsd"), "active")
        self.assertEqual(self.systemctl("show", "-P", "StatusText", "metsd"),
                         "Serving")
        self.assertEqual(self.status()["devices"][0]["pool_bytes"], POOL)
        self.assertEqual(self.machine.run("stat", "-c", "%U", "/run/mets"),
                         "mets\n")

    def test_2_groups_decide_who_may_do_what(self):
        refused = self.machine.run("metsctl", "status", user="alice",
                                   check=False)
        self.assertIn("only group 'mets-admin' may", refused)
        self.machine.run("metsctl", "run", "--job", "a", "--", "true",
                         user="alice")
        refused = self.machine.run("metsctl", "run", "--job", "a", "--", "true",
                                   user="mallory", check=False)
        self.assertIn("only group 'mets' may", refused)

    def test_3_reload_changes_caps_and_refuses_bad_files(self):
        pid = self.main_pid()
        self.configure("max-priority = 3")
        self.systemctl("reload", "metsd")
        self.assertIn("reloaded", self.journal())
        self.configure("colour = 1")
        self.systemctl("reload", "metsd", check=False)
        self.assertIn("unknown key 'colour'", self.journal())
        self.assertEqual(self.main_pid(), pid)
        self.assertEqual(self.systemctl("is-active", "metsd"), "active")
        self.configure()
        self.systemctl("reload", "metsd")

    def test_4_a_daemon_that_hangs_is_restarted(self):
        self.machine.run("mkdir", "-p", "/etc/systemd/system/metsd.service.d")
        drop_in = "/etc/systemd/system/metsd.service.d/watchdog.conf"
        self.machine.run("sh", "-c",
                         f"printf '[Service]\\nWatchdogSec=3s\\n' > {drop_in}")
        self.systemctl("daemon-reload")
        self.systemctl("restart", "metsd")
        pid = self.main_pid()
        time.sleep(4)  # It lives: it says so in time.
        self.assertEqual(self.main_pid(), pid)
        self.machine.run("python3", "-c", f"import os; os.kill({pid}, 19)")
        wait_for(lambda: self.main_pid() not in (0, pid) and
                 self.systemctl("is-active", "metsd", check=False) == "active",
                 20, "a new metsd serves")
        self.machine.run("rm", drop_in)
        self.systemctl("daemon-reload")
        self.systemctl("restart", "metsd")

    def train(self, model, *options):
        """Starts a training; its JSON is /tmp/MODEL afterwards."""
        return self.machine.popen(
            "metsctl", "run", "--job", model, *options, "--", "python3",
            "/opt/mets/tests/e2e/models.py", model, "--steps", STEPS[model],
            "--out", f"/tmp/{model}", user=USER[model],
            env=("PYTHONPATH=/opt/modules", "PYTHONUNBUFFERED=1",
                 "METS_WAIT=120s", "TF_CPP_MIN_LOG_LEVEL=2"))

    def outcome(self, process, model):
        code = process.wait(timeout=600)
        self.assertEqual(code, 0, text_of(process)[-2000:])
        result = json.loads(self.machine.run("cat", f"/tmp/{model}"))
        self.machine.run("rm", f"/tmp/{model}")
        return result["final_loss_hex"], result["weights_sha256"]

    def alone(self, model):
        process = self.machine.popen(
            "python3", "/opt/mets/tests/e2e/models.py", model, "--steps",
            STEPS[model], "--out", f"/tmp/{model}", user=USER[model],
            env=("PYTHONPATH=/opt/modules", "TF_CPP_MIN_LOG_LEVEL=2",
                 "METS_DISABLE=1"))
        return self.outcome(process, model)

    def grant(self):
        """Seconds that a new process takes to start and to get memory. With its
        priority it does not stand behind the others' turns, which last seconds."""
        begin = time.monotonic()
        self.machine.run(
            "metsctl", "run", "--job", "probe", "--priority", "1", "--",
            "/opt/mets/build/bin/mets_stepper", "--persistent-mib", "1",
            "--ephemeral-mib", "1", "--layers", "1", "--steps", "1",
            user="alice", env=("LD_LIBRARY_PATH=/usr/local/lib/mets",))
        return time.monotonic() - begin

    def restart(self, rng):
        if rng.random() < 0.5:
            self.systemctl("restart", "metsd")
        else:
            pid = self.main_pid()
            self.machine.run("python3", "-c", f"import os; os.kill({pid}, 9)")
            wait_for(lambda: self.main_pid() not in (0, pid) and
                     self.systemctl("is-active", "metsd", check=False)
                     == "active", 10, "systemd has started it again")

    def test_5_restarts_under_two_trainings(self):
        rng = random.Random(SEED)
        alone = {model: self.alone(model) for model in STEPS}
        kept = self.journal().count("the pool is kept")
        usual = min(self.grant() for _ in range(3))
        restarts, grants = 0, []
        while restarts < RESTARTS:
            jobs = {model: self.train(model) for model in STEPS}
            for job in jobs.values():
                wait_for(lambda: "step" in text_of(job)
                         or job.poll() is not None, 300, "it trains")
            while (restarts < RESTARTS and
                   all(job.poll() is None for job in jobs.values())):
                self.restart(rng)
                restarts += 1
                grants.append(self.grant())
                device = self.status()["devices"][0]
                self.assertEqual(device["orphan_bytes"], 0)
                time.sleep(rng.uniform(0.5, 1.5))
            for model, job in jobs.items():
                self.assertEqual(self.outcome(job, model), alone[model], model)
        kept = self.journal().count("the pool is kept") - kept
        self.assertEqual(kept, restarts, "restarts that kept the pool")
        print(f"\n{restarts} restarts, the pool kept by all; a new process had memory after at most "
              f"{max(grants):.2f} s, {usual:.2f} s without a restart")
        self.assertLess(max(grants) - usual, 2.0)
        device = self.status()["devices"][0]
        self.assertEqual(device["free_bytes"], POOL)

    def test_6_the_guides_commands_for_root(self):
        """But for cmake's, which the image and install_test ran."""
        for guide in ("install", "upgrade"):
            lines = documents.commands(guide, "root")
            self.assertTrue(lines)
            for line in lines:
                if not line.startswith("cmake "):
                    self.machine.run("sh", "-ec", line)
        self.assertEqual(self.systemctl("is-active", "metsd"), "active")

    def test_7_sockets_of_systemd_hold_connections(self):
        """With the socket units, who connects while metsd is away waits."""
        self.systemctl("stop", "metsd")
        self.systemctl("start", "metsd.socket", "metsd-admin.socket")
        self.assertNotEqual(
            self.systemctl("is-active", "metsd", check=False), "active")
        self.grant()  # It starts metsd.
        self.assertEqual(self.systemctl("is-active", "metsd"), "active")
        self.assertEqual(self.status()["devices"][0]["pool_bytes"], POOL)
        pid = self.main_pid()
        self.machine.run("python3", "-c", f"import os; os.kill({pid}, 9)")
        self.grant()
        self.assertNotEqual(self.main_pid(), pid)
        refused = self.machine.run("metsctl", "status", user="alice",
                                   check=False)
        self.assertIn("only group 'mets-admin' may", refused)
        self.systemctl("stop", "metsd.socket", "metsd-admin.socket", "metsd")
        self.systemctl("start", "metsd")

    def test_9_it_stops_and_leaves_nothing(self):
        self.systemctl("stop", "metsd")
        self.assertEqual(self.systemctl("is-active", "metsd", check=False),
                         "inactive")
        self.assertEqual(self.machine.run("ls", "/run/mets"), "")
        self.assertTrue(re.search(r"stopped$", self.journal(), re.M))


if __name__ == "__main__":
    unittest.main(verbosity=2)
