"""The status page in a real browser, with 1 and 64 jobs.

Screenshots are left in build/status_page/.
"""

import json
import pathlib
import re
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import browser as browsers  # noqa: E402
import harness  # noqa: E402
import shares_test as shares  # noqa: E402

HOG = harness.BIN / "mets_hog"
MIB = harness.MIB
PICTURES = harness.BUILD / "status_page"
ROWS = "return document.querySelectorAll('#job-table tbody tr').length"
# The least contrast of a text with what is behind it, and its element (WCAG 2.1,
# 1.4.3, asks for 4.5).
CONTRAST = r"""
const parts = colour => colour.match(/[\d.]+/g).map(Number);
const channel = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const luminance = colour => {
  const [r, g, b] = parts(colour).map(v => channel(v / 255));
  return .2126 * r + .7152 * g + .0722 * b;
};
const behind = element => {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor;
    if ((parts(colour)[3] ?? 1) === 1) return colour;
  }
  return 'rgb(255, 255, 255)';
};
let least = [Infinity, ''];
for (const element of document.querySelectorAll('body *')) {
  const said = [...element.childNodes].some(
      node => node.nodeType === Node.TEXT_NODE && node.data.trim());
  if (!said || element.closest('svg') || !element.checkVisibility()) continue;
  const both = [getComputedStyle(element).color, behind(element)];
  const [dark, light] = both.map(luminance).sort((a, b) => a - b);
  const contrast = (light + .05) / (dark + .05);
  if (contrast < least[0]) least = [contrast, element.outerHTML.slice(0, 99)];
}
return least;"""


class StatusPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        browsers.require_chromium()
        cls.browser = browsers.Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        """Without what the last test's page says about the end of its daemon."""
        self.browser.open("about:blank")
        self.browser.complaints()

    def start(self, pool, address="127.0.0.1:0"):
        daemon = harness.Daemon(pool, 1 << 30, "--status-address", address)
        daemon.__enter__()
        self.addCleanup(daemon.__exit__)
        return daemon

    @staticmethod
    def url(daemon):
        log = pathlib.Path(daemon.run_dir, "metsd.log").read_text()
        return re.search(r"status (http://\S+)", log)[1]

    def hold(self, daemon, name, mib, *options):
        job = daemon.run(name, [HOG, "--mib", mib, "--buffers", 2, "--pause"],
                         *options)
        self.addCleanup(lambda: (job.kill(), job.wait()))
        return job

    def run_hog(self, daemon, name, mib):
        job = daemon.run(name, [HOG, "--mib", mib, "--inputs", 2])
        self.addCleanup(lambda: (job.kill(), job.wait()))

    def pictures(self, name):
        for scheme in ("light", "dark"):
            self.browser.colours(scheme)
            contrast, where = self.browser.run(CONTRAST)
            self.assertGreaterEqual(contrast, 4.5, f"{scheme}: {where}")
            self.browser.screenshot(PICTURES / f"{name}-{scheme}.png")

    def check_clean(self):
        self.assertEqual(self.browser.complaints(), [])
        origins = self.browser.run(
            "return [...new Set(performance.getEntriesByType('resource')"
            ".map(e => new URL(e.name).origin))]")
        self.assertEqual(origins,
                         [self.browser.run("return location.origin")])

    def test_one_job(self):
        daemon = self.start(64 * MIB)
        self.browser.open(self.url(daemon))
        self.browser.wait("return !document.getElementById('no-jobs').hidden",
                          "no jobs are said to be none")
        self.hold(daemon, "bert", 48, "--limit", "56MiB")
        self.browser.wait(f"{ROWS} == 1", "the job's row")
        row = "document.querySelector('#job-table tbody tr')"
        self.browser.wait(f"return {row}.innerText.includes('48 MiB')",
                          "its resident bytes")
        text = self.browser.run(f"return {row}.innerText")
        self.assertIn("bert", text)
        self.assertIn("56 MiB", text)
        lane = self.browser.find(".lane svg")
        self.assertEqual(self.browser.role(lane), "image")
        self.assertIn("bert 48 MiB", self.browser.label(lane))
        self.browser.wait("return document.querySelector('#decisions')"
                          ".innerText.includes(\"a process of 'bert' uses\")",
                          "the decision that let it in")
        self.assertEqual(self.browser.run(
            "return document.getElementById('connection').textContent"), "live")
        self.pictures("1-job")
        self.check_clean()

    def test_64_jobs_by_keyboard_and_for_screen_readers(self):
        daemon = self.start(256 * MIB)
        for i in range(62):
            self.hold(daemon, f"notebook-{i:02}", 2 + i % 5)
        for name in ("bert", "resnet"):
            self.run_hog(daemon, name, 120)
        self.browser.open(self.url(daemon))
        self.browser.wait(f"{ROWS} == 64", "64 rows", 60)
        self.browser.wait(
            "return document.querySelector('#decisions').innerText"
            ".includes(\"evicted\")", "evictions in words", 60)
        self.browser.wait(
            "return [...document.querySelectorAll('figure .legend b')]"
            ".some(b => /[1-9].*\\/s$/.test(b.textContent))", "traffic", 60)
        # The skip link, then everything in order, by Tab alone.
        self.browser.run("document.activeElement.blur()")
        self.browser.type("tab")
        self.assertEqual(
            self.browser.run("return document.activeElement.className"), "skip")
        self.browser.type("enter", "tab")
        self.assertEqual(
            self.browser.run("return document.activeElement.id"), "filter")
        self.browser.type("notebook-1")
        self.browser.wait(f"{ROWS} == 10", "the filtered rows")
        self.browser.type("escape")
        self.browser.run("const f = document.getElementById('filter');"
                         "f.value = ''; f.dispatchEvent(new Event('input'))")
        self.browser.wait(f"{ROWS} == 64", "all rows again")
        # Sorting: to the first heading's button, Enter.
        self.browser.type("tab", "tab", "enter")
        self.assertEqual(self.browser.run(
            "return document.querySelector('th[data-key=name]')"
            ".getAttribute('aria-sort')"), "ascending")
        self.assertIn("bert", self.browser.run(
            "return document.querySelector('#job-table tbody tr').innerText"))
        self.browser.type("enter")
        self.assertIn("resnet", self.browser.run(
            "return document.querySelector('#job-table tbody tr').innerText"))
        self.check_labels()
        self.check_why()
        self.pictures("64-jobs")
        self.browser.size(480, 900)
        self.assertTrue(self.browser.run(
            "return document.documentElement.scrollWidth <= innerWidth"),
            "nothing is wider than a narrow window")
        self.pictures("64-jobs-narrow")
        self.browser.size(1280, 1000)
        self.check_clean()

    def check_labels(self):
        self.assertEqual(self.browser.run("return document.documentElement.lang"),
                         "en")
        for selector, role in (("#job-table", "table"), ("#filter", "searchbox"),
                               ("#jobs", "region"), ("#decisions", "list"),
                               ("#connection", "status"), ("#pause", "button")):
            self.assertEqual(self.browser.role(self.browser.find(selector)), role)
        for selector in ("#filter", "#jobs", "#decisions", "figure svg[role=img]",
                         ".device", "tbody button"):
            self.assertTrue(self.browser.label(self.browser.find(selector)),
                            selector)

    def check_why(self):
        """Opens by the keyboard, says something, and gives the focus back."""
        self.browser.run("document.querySelector('tbody button').focus()")
        self.browser.type("enter")
        self.browser.wait("return document.getElementById('why').open"
                          " && /On host0: /.test("
                          "document.getElementById('why-text').innerText)",
                          "an answer")
        self.browser.screenshot(PICTURES / "why.png")
        self.browser.type("escape")
        self.browser.wait("return !document.getElementById('why').open",
                          "it closes")
        self.assertEqual(self.browser.run(
            "return document.activeElement.textContent"), "Why?")

    def test_shared_memory_and_who_has_it(self):
        daemon = self.start(64 * MIB)
        self.browser.open(self.url(daemon))
        self.browser.wait("return document.getElementById('shares').hidden",
                          "no shares, no table")
        a, b = (shares.Sharer(daemon.run_dir, job) for job in "ab")
        for sharer in (a, b):
            self.addCleanup(sharer.kill)
        self.assertTrue(a.ask("publish weights 8 7").startswith("ok"))
        self.assertTrue(b.ask("attach weights").startswith("ok"))
        row = "document.querySelector('#share-table tbody tr')"
        self.browser.wait(f"return {row}?.innerText.includes('a, b')",
                          "who has it")
        self.assertEqual(
            self.browser.run(f"return {row}.innerText").split("\t"),
            ["weights", "host0", "8 MiB", "2", "a, b", "a"])
        self.browser.wait(
            "return document.querySelector('.ends').innerText"
            ".includes('8 MiB shared')", "the device's part")
        self.browser.wait(
            "return document.querySelector('#decisions').innerText"
            ".includes(\"'a' has published share 'weights'\")", "the event")
        self.pictures("shares")
        a.kill()
        b.kill()
        self.browser.wait("return document.getElementById('shares').hidden",
                          "it is gone")
        self.check_clean()

    def test_a_daemon_that_is_gone_and_comes_back(self):
        daemon = self.start(64 * MIB)
        url = self.url(daemon)
        self.hold(daemon, "bert", 8)
        self.browser.open(url)
        self.browser.wait(f"{ROWS} == 1", "the job's row")
        daemon.kill()
        self.browser.wait("return document.getElementById('connection')"
                          ".className == 'lost'", "the loss is said")
        self.browser.complaints()  # Of the failed requests.
        again = self.start(64 * MIB, url.split("//")[1].rstrip("/"))
        self.hold(again, "gpt", 8)
        self.browser.wait("return document.getElementById('connection')"
                          ".className == '' && document.querySelector("
                          "'#job-table tbody').innerText.includes('gpt')",
                          "the new one is shown")


if __name__ == "__main__":
    unittest.main(verbosity=2)
