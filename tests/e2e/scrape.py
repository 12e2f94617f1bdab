"""A scrape of a metsd's metrics."""

import re
import urllib.request

SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Scrape:
    """`types`: {metric: type}; `samples`: {(series, labels): value}, where labels
    are a frozenset of pairs."""

    def __init__(self, page):
        self.page = page
        self.types = dict(re.findall(r"^# TYPE (mets_\w+) (\w+)$", page, re.M))
        self.samples = {}
        for line in page.splitlines():
            match = SAMPLE.fullmatch(line)
            if match is not None and match[1].startswith("mets_"):
                key = match[1], frozenset(LABEL.findall(match[2] or ""))
                self.samples[key] = float(match[3])

    def value(self, series, **labels):
        """Of one sample; None when there is none."""
        return self.samples.get((series, frozenset(labels.items())))

    def by_job(self, series, device="host0"):
        """{job: value} of a metric with the labels device and job."""
        return {dict(labels)["job"]: value
                for (name, labels), value in self.samples.items()
                if name == series and ("device", device) in labels}


def fetch(address):
    """The page at ADDRESS/metrics."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as page:
        return page.read().decode()


def scrape(address):
    return Scrape(fetch(address))
