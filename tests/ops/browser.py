"""A headless Chromium, driven over WebDriver's HTTP interface."""

import base64
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"tab": "\ue004", "enter": "\ue007", "escape": "\ue00c",
        "space": " ", "shift": "\ue008"}


def require_chromium():
    """Skips the test where there is no browser."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            raise unittest.SkipTest(
                f"{program} is not installed (tests/ops/setup.sh installs it)")


class Browser:
    """One window. Everything waits for conditions, never for a time."""

    def __init__(self, width=1280, height=1000):
        self._profile = tempfile.TemporaryDirectory(prefix="mets-chromium-")
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL)
        self._session = None
        for line in self._driver.stdout:
            if "on port" in line and "started" in line:
                port = line.rstrip(" .\n").rsplit(" ", 1)[1]
                break
        self._root = f"http://127.0.0.1:{port}"
        options = {"args": [
            "--headless=new", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", f"--user-data-dir={self._profile.name}",
            f"--window-size={width},{height}"]}
        capabilities = {"goog:chromeOptions": options,
                        "goog:loggingPrefs": {"browser": "ALL"}}
        answer = self._call("POST", "/session",
                            {"capabilities": {"alwaysMatch": capabilities}})
        self._session = answer["sessionId"]

    def close(self):
        if self._session:
            self._call("DELETE", "")
        self._driver.terminate()
        self._driver.wait(timeout=20)
        self._driver.stdout.close()
        self._profile.cleanup()

    def _call(self, method, path, body=None):
        if self._session:
            path = f"/session/{self._session}{path}"
        request = urllib.request.Request(
            self._root + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise AssertionError(f"{path}: {value['message']}") from None

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def run(self, script, *args):
        """Runs a function body in the page; its result."""
        return self._call("POST", "/execute/sync",
                          {"script": script, "args": list(args)})

    def wait(self, script, what, seconds=30):
        """Until the function body's result is true; that result."""
        end = time.monotonic() + seconds
        while not (result := self.run(script)):
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}")
            time.sleep(0.05)
        return result

    def find(self, selector):
        return self._call("POST", "/element", {"using": "css selector",
                                               "value": selector})[ELEMENT]

    def role(self, element):
        return self._call("GET", f"/element/{element}/computedrole")

    def label(self, element):
        return self._call("GET", f"/element/{element}/computedlabel")

    def type(self, *keys):
        """Presses keys: names of KEYS, or texts."""
        actions = []
        for key in keys:
            for char in KEYS.get(key, key):
                actions += [{"type": "keyDown", "value": char},
                            {"type": "keyUp", "value": char}]
        self._call("POST", "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": actions}]})

    def colours(self, scheme):
        """"light" or "dark", as a user's system would say."""
        self._call("POST", "/goog/cdp/execute", {
            "cmd": "Emulation.setEmulatedMedia", "params": {"features": [
                {"name": "prefers-color-scheme", "value": scheme}]}})

    def size(self, width, height):
        self._call("POST", "/window/rect", {"width": width, "height": height})

    def screenshot(self, file):
        """The whole page."""
        data = self._call("POST", "/goog/cdp/execute", {
            "cmd": "Page.captureScreenshot",
            "params": {"captureBeyondViewport": True}})["data"]
        path = pathlib.Path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))

    def complaints(self):
        """What the page wrote to its console since the last call."""
        return [entry["message"] for entry in
                self._call("POST", "/se/log", {"type": "browser"})
                if entry["level"] in ("SEVERE", "WARNING")]
