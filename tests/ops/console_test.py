"""A newcomer finds in the console which of three jobs thrashes, and what to do:
a real Prometheus scrapes a real metsd under real jobs, and Chromium shows the page.
Pictures of it are left in build/console.

What docs/thrash.md says is done here, step by step, with its commands."""

import html.parser
import json
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "deploy")]
import documented_metrics  # noqa: E402
import documents  # noqa: E402
import harness  # noqa: E402

MIB = harness.MIB
PROMETHEUS = documented_metrics.program("prometheus")
CHROMIUM = shutil.which("chromium")
FOLDER = ROOT / "deploy" / "prometheus"
PICTURES = harness.BUILD / "console"
STEPPER = [harness.BIN / "mets_stepper", "--hints", "--steps", 1000000,
           "--persistent-mib", 8]
# bert needs 104 MiB and may have 40; its steps are too short to hide the copies.
JOBS = {"bert": ["--ephemeral-mib", 96, "--compute-us", 100],
        "lstm": ["--ephemeral-mib", 16, "--compute-us", 1000, "--input-ms", 20],
        "resnet": ["--ephemeral-mib", 32, "--compute-us", 1000]}
SERVE, MONITOR, *RUNS, RAISE = [
    shlex.split(line.removesuffix(" &"))
    for line in documents.commands("thrash", "walk")]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Page(html.parser.HTMLParser):
    """Rows of jobs, {job: {class of a cell: text}}, and what is drawn."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.thrashing, self.lines, self.keys = {}, set(), 0, []
        self.text, self.drawn, self.devices = "", False, []
        self._job = self._cell = self._tag = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        names = (attributes.get("class") or "").split()
        self._tag = tag
        if tag == "body":
            self.drawn = attributes.get("data-drawn") == "yes"
        elif tag == "polyline":
            self.lines += 1
        elif tag == "tr":
            self._job, self._cell = attributes.get("data-job"), None
            if self._job:
                self.rows[self._job] = {}
            if self._job and "thrash" in names:
                self.thrashing.add(self._job)
        elif tag == "td":
            self._cell = names[-1] if names else None

    def handle_data(self, data):
        self.text += data
        if self._tag == "b" and data.strip():
            self.keys.append(data)
        if self._job and self._cell and data.strip():
            row = self.rows[self._job]
            row[self._cell] = row.get(self._cell, "") + data.strip()

    def handle_endtag(self, tag):
        self._tag = None
        if tag in ("td", "tr"):
            self._cell = None


class Prometheus:
    def __init__(self, metrics_address, folder):
        config = (FOLDER / "prometheus.yml").read_text()
        config = config.replace("127.0.0.1:9464", metrics_address)
        config = config.replace("alerts.yml", str(FOLDER / "alerts.yml"))
        config = config.replace(": 5s", ": 1s")
        file = pathlib.Path(folder, "prometheus.yml")
        file.write_text(config)
        self.url = f"http://127.0.0.1:{free_port()}"
        self._log = open(pathlib.Path(folder, "prometheus.log"), "w")
        self.process = subprocess.Popen(
            [PROMETHEUS,
             *[word.replace("deploy/prometheus/prometheus.yml", str(file))
               for word in MONITOR[1:]],
             f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.url[7:]}",
             f"--web.console.libraries={folder}"],
            cwd=ROOT, stdout=self._log, stderr=self._log)

    def get(self, path, **query):
        with urllib.request.urlopen(
                f"{self.url}{path}?{urllib.parse.urlencode(query)}",
                timeout=20) as answer:
            return answer.read().decode()

    def ready(self):
        try:
            return "Ready" in self.get("/-/ready")
        except OSError:
            return False

    def number(self, query):
        """Of a query's only sample; 0 without one."""
        result = json.loads(self.get("/api/v1/query", query=query))
        samples = result["data"]["result"]
        return float(samples[0]["value"][1]) if samples else 0

    def alerts(self):
        """{(alert, job)} that fire, or will."""
        alerts = json.loads(self.get("/api/v1/alerts"))["data"]["alerts"]
        return {(a["labels"]["alertname"], a["labels"].get("job"))
                for a in alerts}

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self._log.close()


@unittest.skipIf(PROMETHEUS is None or CHROMIUM is None,
                 "no prometheus or chromium: tests/ops/setup.sh")
class Console(unittest.TestCase):
    def setUp(self):
        PICTURES.mkdir(exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix="mets-console-",
                                             ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.assertEqual(SERVE, [
            "metsd", "--device", "host:256MiB", "--swap-space", "512MiB",
            "--metrics-address", "127.0.0.1:9464"])
        self.daemon = harness.Daemon(256 * MIB, 512 * MIB, "--metrics-address",
                                     "127.0.0.1:0")
        self.daemon.__enter__()
        self.addCleanup(self.daemon.__exit__)
        self.prometheus = Prometheus(self.daemon.metrics_address(), self.folder)
        self.addCleanup(self.prometheus.stop)
        harness.wait_for(self.prometheus.ready, 60, "Prometheus is ready")

    def start_jobs(self):
        for *words, program in RUNS:
            self.assertEqual(program, "…")
            name = words[words.index("--job") + 1]
            job = subprocess.Popen(
                [harness.BIN / words[0], *words[1:],
                 *map(str, STEPPER + JOBS[name])],
                env=dict(os.environ, METS_RUN_DIR=self.daemon.run_dir),
                stdout=subprocess.DEVNULL)
            self.addCleanup(job.wait)
            self.addCleanup(job.kill)

    def served(self):
        """The page as Prometheus serves it, before its script has run."""
        return Page(self.prometheus.get("/consoles/mets.html"))

    def shown(self, picture):
        """The page as Chromium shows it."""
        done = subprocess.run(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu",
             f"--user-data-dir={self.folder}/chromium",
             "--window-size=1300,1150", "--virtual-time-budget=8000",
             f"--screenshot={PICTURES / picture}", "--dump-dom",
             f"{self.prometheus.url}/consoles/mets.html"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=180)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Page(done.stdout)

    def test_without_jobs_the_page_says_so(self):
        harness.wait_for(lambda: "host0" in self.served().text, 60, "a scrape")
        page = self.shown("no-jobs.png")
        self.assertIn("no jobs", page.text)
        self.assertIn("256MiB", page.text)

    def test_the_job_that_thrashes_is_found_and_helped(self):
        self.start_jobs()
        harness.wait_for(
            lambda: self.served().thrashing == {"bert"}
            and len(self.served().rows) == len(JOBS), 120, "bert thrashes")
        # Enough for curves.
        count = 'count_over_time(mets_job_slowdown{job="bert"}[10m])'
        harness.wait_for(lambda: self.prometheus.number(count) >= 20, 120,
                         "twenty scrapes")
        page = self.shown("bert-thrashes.png")
        self.check_page(page)
        # What the page says to do, done.
        self.assertEqual(page.thrashing, {"bert"})
        self.assertIn("raise its limit (metsctl limit bert SIZE)",
                      page.rows["bert"]["advice"])
        self.assertEqual(page.rows["bert"]["limit"], "40MiB")
        harness.wait_for(
            lambda: ("MetsThrash", "bert") in self.prometheus.alerts(), 120,
            "the alert")
        thrash = {job for name, job in self.prometheus.alerts()
                  if name == "MetsThrash"}
        self.assertEqual(thrash, {"bert"})
        self.daemon.ctl(*RAISE[1:])
        harness.wait_for(lambda: not self.served().thrashing, 120,
                         "bert has what it needs")
        page = self.shown("bert-is-well.png")
        self.check_page(page)
        self.assertEqual(page.thrashing, set())
        self.assertEqual(page.rows["bert"]["limit"], "128MiB")
        self.assertNotIn("advice", page.rows["bert"])

    def check_page(self, page):
        """Three jobs with their numbers, and a curve for each in all figures."""
        self.assertEqual(set(page.rows), set(JOBS))
        for job, row in page.rows.items():
            self.assertGreaterEqual(float(row["slowdown"]), 1, job)
            self.assertRegex(row["resident"], r"^[\d.]+MiB$", job)
        # The one that pays most stands first.
        slowdowns = [float(row["slowdown"]) for row in page.rows.values()]
        self.assertEqual(slowdowns, sorted(slowdowns, reverse=True))
        self.assertTrue(page.drawn)
        self.assertEqual(page.lines, 4 * len(JOBS))
        self.assertEqual(len(page.keys), 4 * len(JOBS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
