"""Every query of alerts, dashboards and the console names a documented metric
(which e2e's metrics_test compares with a real scrape) and labels that it has."""

import json
import re
import subprocess
import tempfile
import unittest

import documented_metrics

DEPLOY = documented_metrics.ROOT / "deploy"
DASHBOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
CONSOLE = DEPLOY / "prometheus" / "consoles" / "mets.html"
METRICS = documented_metrics.documented()
PROMTOOL = documented_metrics.program("promtool")
# Prometheus adds these to every series.
ADDED = {"instance", "job"}
# What Grafana fills in.
VARIABLES = {"$__rate_interval": "5m", "$device": ".*", "$job": "bert"}


def parts_of_histograms():
    """{name of a series: name of its metric}"""
    parts = {name: name for name, (kind, _) in METRICS.items()
             if kind != "histogram"}
    for name, (kind, _) in METRICS.items():
        if kind == "histogram":
            parts |= {name + end: name for end in ("_bucket", "_sum", "_count")}
    return parts


PARTS = parts_of_histograms()


def labels_of(series):
    """The labels that a series may be selected or grouped by."""
    le = {"le"} if series.endswith("_bucket") else set()
    return set(METRICS[PARTS[series]][1]) | ADDED | le


def complaints(query):
    """What is wrong with the metrics and labels of a PromQL expression."""
    wrong = []
    named = set()
    for series, matchers in re.findall(r"(mets_\w+)(?:\{([^}]*)\})?", query):
        if series not in PARTS:
            wrong.append(f"{series} is no metric of metsd")
            continue
        named |= labels_of(series)
        used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
        wrong += [f"{series} has no label {name}"
                  for name in used - labels_of(series)]
    for group in re.findall(r"\b(?:by|on|without)\s*\(([^)]*)\)", query):
        wrong += [f"no label {name} to group by"
                  for name in set(re.split(r"[,\s]+", group.strip())) - named]
    return wrong


def fill_in(query):
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    return query


def queries_of_dashboard(path):
    board = json.loads(path.read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield f"{path.name}: {panel['title']}", fill_in(target["expr"])
    for variable in board["templating"]["list"]:
        match = re.fullmatch(r"label_values\((.*), (\w+)\)",
                             variable.get("definition", ""))
        if match is not None:
            yield (f"{path.name}: {variable['name']}",
                   fill_in(f"count by ({match[2]}) ({match[1]})"))


def queries_of_console():
    """With the selectors of one row filled in for Go's printf verbs."""
    text = CONSOLE.read_text()
    selector = "{instance='a',device='host0',job='bert'}"
    for query in re.findall(r'query "([^"]*)"', text):
        yield "console", query
    for query, arguments in re.findall(r'query \(printf "([^"]*)"([^)]*)\)', text):
        row = selector if "$j" in arguments else (
            "{instance='a',device='host0'}" if "$dd" not in arguments
            else "{instance='a',device='host0',direction=")
        yield "console", query.replace("%s", row)
    for query in re.findall(r'data-query="([^"]*)"', text):
        yield "console", query


def queries_of_alerts():
    text = (DEPLOY / "prometheus" / "alerts.yml").read_text()
    for expression in re.findall(r"expr: (?:>-)?(.*?)\n        (?:for|labels):",
                                 text, re.S):
        yield "alerts.yml", " ".join(expression.split())


def all_queries():
    for path in DASHBOARDS:
        yield from queries_of_dashboard(path)
    yield from queries_of_console()
    yield from queries_of_alerts()


class Dashboards(unittest.TestCase):
    def test_queries_name_metrics_and_labels_that_exist(self):
        queries = list(all_queries())
        self.assertGreater(len(queries), 80)
        wrong = [f"{where}: {line}: {query}" for where, query in queries
                 for line in complaints(query)]
        self.assertEqual(wrong, [])

    def test_the_check_finds_what_is_wrong(self):
        self.assertTrue(complaints("mets_no_such_bytes"))
        self.assertTrue(complaints("rate(mets_wait_seconds[5m])"))
        self.assertTrue(complaints('mets_device_pool_bytes{direction="in"}'))
        self.assertTrue(complaints("sum by (reason) (mets_steps_total)"))
        self.assertFalse(complaints("sum by (job, reason) (mets_failures_total)"))

    def test_there_is_an_overview_one_job_and_who_pays(self):
        self.assertEqual([path.name for path in DASHBOARDS],
                         ["job.json", "overview.json", "who-pays.json"])
        for path in DASHBOARDS:
            board = json.loads(path.read_text())
            self.assertTrue(board["uid"] and board["title"])
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(ids), len(set(ids)))
            for panel in board["panels"]:
                self.assertTrue(panel["description"], panel["title"])

    @unittest.skipIf(PROMTOOL is None,
                     "no promtool: package prometheus, or deploy/setup.sh")
    def test_queries_are_promql(self):
        rules = [{"record": "tried", "expr": query, "labels": {"n": str(i)}}
                 for i, (_, query) in enumerate(all_queries())]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            # JSON is YAML.
            json.dump({"groups": [{"name": "tried", "rules": rules}]}, file)
            file.flush()
            done = subprocess.run([PROMTOOL, "check", "rules", file.name],
                                  text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
