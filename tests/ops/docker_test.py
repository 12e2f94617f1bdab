"""The images and compose.yaml of deploy/docker, by podman and runc: two jobs in two
containers share a device of a daemon in a third, without privilege. Needs
tests/ops/setup.sh once.

What differs from `docker compose up`: the base image is the test's own, Python's
modules are mounted instead of installed by pip, Prometheus is Debian's in place of
the image of that name, and there is no network but what Prometheus and metsd share.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import containers
from containers import MODULES, ROOT, podman, wait_for

sys.path.append(str(ROOT / "tests" / "deploy"))
import documented_metrics  # noqa: E402

DOCKER = ROOT / "deploy" / "docker"
PREFIX = f"mets-ops-{os.getpid()}"


def compose():
    """compose.yaml as Python's objects."""
    return json.loads(subprocess.run(
        ["/usr/bin/python3", "-c",
         "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))"],
        stdin=open(DOCKER / "compose.yaml"), check=True,
        stdout=subprocess.PIPE).stdout)


def options_of(service):
    """podman's options for a service of compose.yaml."""
    options = []
    for mount in service["volumes"]:
        source, rest = mount.split(":", 1)
        source = (f"{PREFIX}-{source}" if source[0] not in "./"
                  else (DOCKER / source).resolve())
        options += ["-v", f"{source}:{rest}"]
    for name, value in service.get("environment", {}).items():
        options += ["-e", f"{name}={value}"]
    options += [f"--cap-drop={name}" for name in service.get("cap_drop", [])]
    options += [f"--security-opt={what.split(':')[0]}"
                for what in service.get("security_opt", [])]
    return options


# Like the image that compose.yaml names: its programs' places and its user; Debian's
# program keeps its data elsewhere by default.
PROMETHEUS_IMAGE = """
ARG BASE
FROM ${BASE}
COPY prometheus promtool /bin/
RUN install -d -o nobody -g nogroup /prometheus && \\
    install -d /etc/prometheus && ln -s /prometheus /var/lib/prometheus
USER nobody
WORKDIR /prometheus
ENTRYPOINT ["/bin/prometheus"]
"""


@contextlib.contextmanager
def context():
    """The repository's folders that the Dockerfiles copy from."""
    with containers.staged() as folder:
        (pathlib.Path(folder) / "build").mkdir()
        shutil.move(f"{folder}/stage", f"{folder}/build/stage")
        shutil.copytree(DOCKER, f"{folder}/deploy/docker")
        yield folder


@unittest.skipIf(containers.missing(), containers.missing())
class Docker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.services = compose()["services"]
        with context() as folder:
            for name in ("metsd", "first"):
                service = cls.services[name]
                containers.build_image(
                    f"localhost/{service['image']}",
                    ROOT / service["build"]["dockerfile"], folder, "TENSORFLOW=")

    @classmethod
    def make_prometheus_image(cls):
        with tempfile.TemporaryDirectory() as folder:
            for program in ("prometheus", "promtool"):
                shutil.copy(documented_metrics.program(program), folder)
            file = pathlib.Path(folder, "Containerfile")
            file.write_text(PROMETHEUS_IMAGE)
            containers.build_image(
                f"localhost/{cls.services['prometheus']['image']}", file, folder)

    def setUp(self):
        for volume in compose()["volumes"]:
            podman("volume", "create", f"{PREFIX}-{volume}")
            self.addCleanup(podman, "volume", "rm", "-f", f"{PREFIX}-{volume}",
                            check=False)

    def start(self, name, *more, command=None, network="none"):
        service = self.services[name]
        container = containers.Container(
            name, f"localhost/{service['image']}", *options_of(service), *more,
            command=command or service["command"], network=network)
        self.addCleanup(container.__exit__)
        return container

    def train(self, name, *more):
        return self.start(name, "-v", f"{MODULES}:/opt/modules:ro", "-e",
                          "PYTHONPATH=/opt/modules", "-e", "METS_WAIT=120s",
                          *more)

    def outcome(self, job, name):
        self.assertEqual(job.wait(), 0, job.logs()[-2000:])
        volume = podman("volume", "inspect", "--format", "{{.Mountpoint}}",
                        f"{PREFIX}-results").stdout.strip()
        result = json.loads(pathlib.Path(volume, f"{name}.json").read_text())
        return (result["final_loss_hex"], result["weights_sha256"]), result

    def test_two_jobs_in_containers_share_a_device_in_a_third(self):
        daemon = self.start("metsd")
        wait_for(lambda: "ready" in daemon.logs(), 30, daemon.logs)
        alone = {}
        for name in ("first", "second"):
            job = self.train(name, "-e", "METS_DISABLE=1")
            alone[name], _ = self.outcome(job, name)
            job.__exit__()
        jobs = {name: self.train(name) for name in ("first", "second")}

        def both():
            status = json.loads(daemon.run("metsctl", "jobs", "--json"))
            return {job["name"] for job in status["jobs"]
                    if job["resident_bytes"] > 0} == {"first", "second"}
        wait_for(both, 240, lambda: "both have memory of it: " + "".join(
            job.logs()[-1000:] for job in jobs.values()))
        evicted = 0
        for name, job in jobs.items():
            outcome, result = self.outcome(job, name)
            self.assertEqual(outcome, alone[name], name)
            evicted += result["mets"]["evicted_bytes_total"]
        self.assertGreater(evicted, 0, "they did not share")
        wait_for(lambda: json.loads(daemon.run(
            "metsctl", "devices", "--json"))["devices"][0]["resident_bytes"]
                 == 0, 10, "all memory is back")

    def test_prometheus_scrapes_the_daemon(self):
        if documented_metrics.program("prometheus") is None:
            self.skipTest("no prometheus: tests/ops/setup.sh")
        self.make_prometheus_image()
        daemon = self.start("metsd")
        wait_for(lambda: "ready" in daemon.logs(), 30, daemon.logs)
        hosts = tempfile.NamedTemporaryFile("w", suffix=".hosts")
        self.addCleanup(hosts.close)
        hosts.write("127.0.0.1 localhost metsd\n")
        hosts.flush()
        os.chmod(hosts.name, 0o644)
        prometheus = self.start("prometheus", "-v", f"{hosts.name}:/etc/hosts:ro",
                                network=f"container:{daemon.name}")

        def get(path):
            return prometheus.run(
                "python3", "-c", "import sys, urllib.request; print(urllib."
                "request.urlopen(sys.argv[1], timeout=20).read().decode())",
                f"http://127.0.0.1:9090/{path}", check=False)

        def value(query):
            """Of the query's only sample; None: there is none yet."""
            try:
                sample, = json.loads(
                    get(f"api/v1/query?query={query}"))["data"]["result"]
                return float(sample["value"][1])
            except ValueError:
                return None
        wait_for(lambda: value("up") == 1, 60, prometheus.logs)
        wait_for(lambda: value("mets_device_pool_bytes") == 200 << 20, 30,
                 lambda: get("api/v1/targets"))
        rules = json.loads(get("api/v1/rules"))["data"]["groups"]
        self.assertIn("MetsThrash",
                      {rule["name"] for group in rules for rule in group["rules"]})
        self.assertIn("host0", get("consoles/mets.html"))
        self.assertEqual(prometheus.run("id", "-un"), "nobody\n")

    def test_nobody_is_privileged(self):
        for name in ("metsd", "first", "second"):
            service = self.services[name]
            self.assertEqual(service["cap_drop"], ["ALL"])
            self.assertFalse({"privileged", "pid", "userns_mode", "ipc",
                              "cap_add", "devices"} & set(service), name)
        job = self.start("first", command=["sleep", "60"])
        caps = job.run("grep", "Cap", "/proc/self/status")
        self.assertNotRegex(caps, r"Cap(Eff|Prm|Bnd):\s+0*[1-9a-f]")
        self.assertEqual(job.run("id", "-u"), "1000\n")
        self.assertFalse(job.run("ls", "/run/mets").count("admin.sock"))

    def test_a_job_without_the_daemon_ends_with_an_error(self):
        job = self.train("first")
        self.assertNotEqual(job.wait(), 0)
        self.assertIn("no metsd at /run/mets/fd.sock", job.logs())


if __name__ == "__main__":
    unittest.main(verbosity=2)
