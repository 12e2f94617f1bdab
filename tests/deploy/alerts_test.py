"""The alerts are valid, and each is tested where it fires and where it does not."""

import re
import shutil
import subprocess
import tempfile
import unittest

import documented_metrics

FOLDER = documented_metrics.ROOT / "deploy" / "prometheus"
PROMTOOL = documented_metrics.program("promtool")


def promtool(*arguments):
    return subprocess.run([PROMTOOL, *map(str, arguments)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@unittest.skipIf(PROMTOOL is None,
                 "no promtool: package prometheus, or deploy/setup.sh")
class Alerts(unittest.TestCase):
    def test_configuration_is_valid(self):
        for config in (FOLDER / "prometheus.yml",
                       FOLDER.parent / "docker" / "prometheus.yml"):
            with tempfile.TemporaryDirectory() as folder:
                # Side by side, as where they are used.
                for file in (config, FOLDER / "alerts.yml"):
                    shutil.copy(file, folder)
                done = promtool("check", "config", f"{folder}/{config.name}")
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_rules_do_as_their_tests_say(self):
        done = promtool("test", "rules", FOLDER / "alerts_test.yml")
        self.assertEqual(done.returncode, 0, done.stdout)


class Completeness(unittest.TestCase):
    def test_every_alert_is_tested_both_ways(self):
        alerts = set(re.findall(r"- alert: (\w+)",
                                (FOLDER / "alerts.yml").read_text()))
        tests = (FOLDER / "alerts_test.yml").read_text()
        cases = re.findall(r"alertname: (\w+)\n( *exp_alerts:)?", tests)
        self.assertEqual(alerts, {name for name, fires in cases if fires})
        self.assertEqual(alerts, {name for name, fires in cases if not fires})

    def test_every_alert_says_what_is_and_what_to_do(self):
        text = (FOLDER / "alerts.yml").read_text()
        for alert in text.split("- alert: ")[1:]:
            name = alert.split()[0]
            shared = "annotations: *" in alert
            self.assertTrue(shared or "summary:" in alert, name)
            self.assertTrue(shared or "description:" in alert, name)


if __name__ == "__main__":
    unittest.main()
