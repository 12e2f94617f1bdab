"""The metrics say what is: they are compared with /proc and with what the
processes count themselves, while jobs run and die."""

import collections
import json
import os
import signal
import subprocess
import threading
import unittest

import harness
import scrape

MIB = harness.MIB
POOL = 64 * MIB
SWAP = 512 * MIB
HOG = harness.BIN / "mets_hog"
# Series of a job, by what mets_get_stats calls it.
SERIES = {
    "resident_bytes": "mets_job_resident_bytes",
    "swapped_bytes": "mets_job_swapped_bytes",
    "cached_bytes": "mets_job_cached_bytes",
    "pinned_bytes": "mets_job_pinned_bytes",
    "held_bytes": "mets_job_held_bytes",
    "evicted_bytes_total": "mets_evicted_bytes_total",
    "restored_bytes_total": "mets_restored_bytes_total",
    "clean_evictions_total": "mets_clean_evictions_total",
    "unobserved_accesses_total": "mets_unobserved_accesses_total",
}
PARTS = ("free", "cached", "resident", "moving", "draining")


class Process:
    """One process of a job, which rests and tells its counters when asked."""

    def __init__(self, daemon, job, mib, limit=0):
        self.job = job
        self._process = subprocess.Popen(
            [HOG, "--tell", "--mib", str(mib), "--buffers", "8", "--inputs", "2",
             "--output-mib", "2"],
            env=dict(os.environ, METS_RUN_DIR=daemon.run_dir, METS_JOB=job,
                     METS_LIMIT=str(limit) if limit else ""),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self._process.stdout.readline() == "filled\n"

    def rest(self):
        self._process.stdin.write("rest\n")
        assert self._process.stdout.readline() == "rests\n"

    def tell(self):
        self._process.stdin.write("tell\n")
        return json.loads(self._process.stdout.readline())

    def go_on(self):
        self._process.stdin.write("go on\n")

    @property
    def pid(self):
        return self._process.pid

    def mapped_bytes(self):
        """Of the pool's chunks in buffers, as the kernel says. Each chunk that the
        process knows is mapped once more, at its alias."""
        lengths, sizes = collections.Counter(), {}
        folder = f"/proc/{self._process.pid}"
        with open(f"{folder}/maps") as maps:
            for line in maps:
                if "/memfd:mets-chunk" not in line:
                    continue
                place, inode = line.split()[0], line.split()[4]
                begin, end = place.split("-")
                lengths[inode] += int(end, 16) - int(begin, 16)
                sizes[inode] = os.stat(f"{folder}/map_files/{place}").st_size
        return sum(lengths.values()) - sum(sizes.values())

    def kill(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


def faults_of(page, before, limits):
    """What cannot be true of a scrape, and of one after another one."""
    faults = [f"{key} = {value}" for key, value in page.samples.items()
              if value < 0]
    parts = {part: page.value(f"mets_device_{part}_bytes", device="host0")
             for part in PARTS}
    if sum(parts.values()) != POOL:
        faults.append(f"{parts} are not the pool")
    if page.value("mets_device_swap_used_bytes", device="host0") > SWAP:
        faults.append("more swap space than there is")
    resident = page.by_job("mets_job_resident_bytes")
    cached = page.by_job("mets_job_cached_bytes")
    faults += [f"{job} has {resident[job]} + {cached[job]}, its limit is {most}"
               for job, most in limits.items()
               if resident.get(job, 0) + cached.get(job, 0) > most]
    if before is not None:
        faults += [f"{key} fell from {before.samples[key]} to {value}"
                   for key, value in page.samples.items()
                   if key[0].endswith(("_total", "_count", "_sum", "_bucket"))
                   and value < before.samples.get(key, 0)]
    return faults


class Watcher(threading.Thread):
    """Looks for what cannot be true, all the time."""

    def __init__(self, address, limits):
        super().__init__()
        self._address, self._limits = address, limits
        self._over = threading.Event()
        self.faults, self.scrapes = [], 0

    def run(self):
        before = None
        while not self._over.wait(0.02):
            page = scrape.scrape(self._address)
            self.faults += faults_of(page, before, self._limits)
            before = page
            self.scrapes += 1

    def stop(self):
        self._over.set()
        self.join()


class Truth(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(POOL, SWAP, "--metrics-address",
                                     "127.0.0.1:0")
        self.daemon.__enter__()
        self.addCleanup(self.daemon.__exit__)
        self.address = self.daemon.metrics_address()
        self.processes = []
        self.mourning = set()  # Jobs of which a process has been killed.
        self.addCleanup(lambda: [p.kill() for p in self.processes])

    def start(self, *arguments, **options):
        process = Process(self.daemon, *arguments, **options)
        self.processes.append(process)
        return process

    def tell(self):
        """{job: sums of what its processes count}"""
        told = collections.defaultdict(collections.Counter)
        for process in self.processes:
            told[process.job].update(process.tell())
        return told

    def differences(self):
        told = self.tell()
        page = scrape.scrape(self.address)
        return [f"{job}: {series} = {page.by_job(series).get(job)}, "
                f"the processes say {counts[name]}"
                for job, counts in told.items()
                for name, series in SERIES.items()
                if not self.agrees(job, series, page.by_job(series).get(job),
                                   counts[name])]

    def agrees(self, job, series, shown, told):
        # What a killed process has counted stays, and nobody else knows it.
        if shown is not None and series.endswith("_total"):
            return shown >= told if job in self.mourning else shown == told
        return shown == told

    def check_at_rest(self):
        for process in self.processes:
            process.rest()
        # Orders end, and what has changed is reported within a second.
        last = []

        def equal():
            last[:] = self.differences()
            return not last
        try:
            harness.wait_for(equal, 10, "the scrape agrees with the processes")
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *last])) from None
        self.check_mappings()
        told = self.tell()
        for process in self.processes:
            process.go_on()
        return told

    def look_at_mappings(self):
        """A scrape, and bytes mapped by job, between which nothing has moved: room
        for the job whose quantum opens is made while all are at rest."""
        looks = []

        def same():
            page = scrape.scrape(self.address)
            mapped = collections.Counter()
            for process in self.processes:
                mapped[process.job] += process.mapped_bytes()
            looks[:] = page, mapped
            return page.by_job("mets_job_resident_bytes") == scrape.scrape(
                self.address).by_job("mets_job_resident_bytes")

        harness.wait_for(same, 10, "nothing moves")
        return looks

    def check_mappings(self):
        if os.geteuid() != 0:
            return  # Only root sees what is mapped.
        page, mapped = self.look_at_mappings()
        resident = page.by_job("mets_job_resident_bytes")
        for job, count in mapped.items():
            # Cached chunks need not be mapped, and lent ones are as well.
            self.assertGreaterEqual(count, resident[job], job)
        there = harness.memory_bytes(
            [self.daemon.process.pid, *(p.pid for p in self.processes)],
            "mets-chunk")
        self.assertLessEqual(there, POOL)
        had = [page.value(f"mets_device_{part}_bytes", device="host0")
               for part in ("resident", "cached")]
        # Every byte of the buffers has been written.
        self.assertGreaterEqual(there, had[0])
        self.assertLessEqual(sum(had), POOL)

    def test_scrapes_agree_while_jobs_run_and_die(self):
        limits = {f"limited-{n}": 16 * MIB for n in range(4)}
        watcher = Watcher(self.address, limits)
        watcher.start()
        self.addCleanup(watcher.stop)
        for n in range(4):
            twins = [self.start(f"twins-{n}", 24) for _ in range(2)]
            self.start(f"limited-{n}", 24, limit=16 * MIB)
            self.start(f"once-{n}", 16)
            moved = self.check_at_rest()[f"limited-{n}"]
            self.assertGreater(moved["evicted_bytes_total"], 0)
            for victim in (twins[0], self.processes[-1]):
                victim.kill()  # At work.
                self.processes.remove(victim)
                self.mourning.add(victim.job)
            self.check_at_rest()
            for process in self.processes:
                process.kill()
            self.processes.clear()
            self.check_that_nothing_is_left()
        watcher.stop()
        self.assertEqual(watcher.faults[:5], [])
        self.assertGreater(watcher.scrapes, 20)

    def test_a_job_that_ends_has_told_everything(self):
        job = self.daemon.run(
            "ends", [harness.BIN / "mets_stepper", "--hints", "--steps", 30,
                     "--persistent-mib", 8, "--ephemeral-mib", 32],
            "--limit", "24MiB")
        harness.finish(job)
        told = json.loads(harness.text_of(job).splitlines()[-1])
        self.assertGreater(told["evicted_bytes"], 0)
        self.check_that_nothing_is_left()
        page = scrape.scrape(self.address)
        for series, count in (
                ("mets_evicted_bytes_total", told["evicted_bytes"]),
                ("mets_restored_bytes_total", told["restored_bytes"]),
                ("mets_steps_total", 29)):  # From beginning to beginning.
            self.assertEqual(page.by_job(series)["ends"], count, series)

    def check_that_nothing_is_left(self):
        def all_back():
            page = scrape.scrape(self.address)
            return (page.value("mets_device_free_bytes", device="host0") == POOL
                    and page.value("mets_device_swap_used_bytes",
                                   device="host0") == 0
                    and not any(page.by_job("mets_job_sessions").values())
                    and not any(page.by_job("mets_job_resident_bytes").values()))
        harness.wait_for(all_back, 10, "the pool is free again")


if __name__ == "__main__":
    unittest.main(verbosity=2)
