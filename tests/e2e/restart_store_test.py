"""metsd is killed and started again by a service manager that keeps its
descriptors: the pool is kept, and every byte in it."""

import os
import random
import signal
import time
import unittest

import harness
import service_store

HOG = harness.BIN / "mets_hog"
MIB = harness.MIB
POOL = 96 * MIB
SEED = 11


class RestartStore(unittest.TestCase):
    def hog(self, daemon, job, *args):
        """A job that checks its bytes; it has filled its buffers."""
        process = daemon.run(job, [HOG, *args], METS_WAIT="60s")
        harness.wait_for(lambda: "filled" in harness.text_of(process)
                         or process.poll() is not None, 60, f"{job} is filled")
        self.assertIsNone(process.poll(), harness.text_of(process))
        return process

    def restart(self, daemon, pause=0):
        daemon.kill()
        time.sleep(pause)
        daemon.start()

    def restored(self, daemon):
        """Bytes, of each job."""
        return [job["restored_bytes_total"] for job in daemon.status()["jobs"]]

    def assert_kept(self, daemon):
        self.assertIn("the pool is kept", daemon.log())
        self.assertEqual(daemon.device()["orphan_bytes"], 0)

    def assert_dropped(self, daemon, why):
        self.assertIn(why, daemon.log())
        self.assertNotIn("the pool is kept", daemon.log())

    def left(self, daemon, job):
        """Evicts what is not in use; whether all that an earlier daemon had
        lent has left."""
        daemon.ctl("evict", job)
        return daemon.device()["orphan_bytes"] == 0

    def end(self, jobs):
        for job in jobs:
            job.kill()
            job.wait()

    def assert_whole(self, daemon, pool=POOL):
        harness.wait_for(lambda: daemon.device()["free_bytes"] == pool, 20,
                         "the pool is whole")
        self.assertEqual(daemon.device()["swap_used_bytes"], 0)

    def test_jobs_that_move_keep_every_byte(self):
        """Killed at any moment, also of orders, copies and creations."""
        rng = random.Random(SEED)
        with service_store.Daemon(POOL) as daemon:
            jobs = [self.hog(daemon, name, "--mib", 64, "--buffers", 16,
                             "--inputs", 2) for name in "abc"]
            for _ in range(20):
                time.sleep(rng.uniform(0, 0.7))
                self.restart(daemon, rng.choice([0, rng.uniform(0, 0.5)]))
                self.assert_kept(daemon)
            before = self.restored(daemon)
            harness.wait_for(
                lambda: all(now > then + 16 * MIB for now, then in
                            zip(self.restored(daemon), before)),
                120, "they go on")
            for job in jobs:
                self.assertIsNone(job.poll(), harness.text_of(job))
            self.end(jobs)
            self.assert_whole(daemon)

    def test_a_stopped_job_keeps_its_memory_and_delays_nobody(self):
        grace = 60
        with service_store.Daemon(POOL, 2 << 30, "--recovery-grace",
                                  f"{grace}s") as daemon:
            idle = self.hog(daemon, "idle", "--mib", 40, "--pause")
            idle.send_signal(signal.SIGSTOP)
            self.restart(daemon)
            self.assert_kept(daemon)
            begin = time.monotonic()
            other = self.hog(daemon, "other", "--mib", 40, "--pause")
            self.assertLess(time.monotonic() - begin, grace / 2)
            self.assertGreaterEqual(daemon.device()["resident_bytes"], 80 * MIB)
            idle.send_signal(signal.SIGCONT)
            self.end([other])
            harness.wait_for(
                lambda: daemon.device()["resident_bytes"] < 80 * MIB, 20,
                "only the idle one's is left")
            self.end([idle])
            self.assert_whole(daemon)

    def test_jobs_that_end_meanwhile_leave_nothing(self):
        with service_store.Daemon(POOL) as daemon:
            jobs = [self.hog(daemon, name, "--mib", 64, "--buffers", 16)
                    for name in "ab"]
            daemon.kill()
            self.end(jobs)
            daemon.start()
            self.assert_kept(daemon)
            self.assert_whole(daemon)
            # And the memory is of use.
            harness.finish(daemon.run("c", [HOG, "--mib", 90, "--rounds", 3]))

    def test_an_orderly_restart_keeps_the_pool(self):
        with service_store.Daemon(POOL) as daemon:
            job = self.hog(daemon, "a", "--mib", 64)
            daemon.process.terminate()
            daemon.process.wait(timeout=20)
            daemon.start()
            self.assert_kept(daemon)
            self.end([job])
            self.assert_whole(daemon)

    def test_what_is_unclear_is_dropped(self):
        """Then the jobs' memory is theirs, as without a store, and comes back;
        the next restart keeps the pool again."""
        def lose_a_chunk(daemon):
            daemon.store.drop(next(n for n in daemon.store.names()
                                   if n.startswith("c")))

        def damage_the_journal(daemon):
            journal = daemon.store.descriptor("journal")
            # Over a frame of the area that counts: both begin with the basis.
            area = (os.fstat(journal).st_size - 4096) // 2
            for begin in (4096, 4096 + area):
                if os.pread(journal, 8, begin) != bytes(8):
                    os.pwrite(journal, b"damaged!", begin + 16)

        def lose_the_journal(daemon):
            daemon.store.drop("journal")

        def exchange_a_chunk(daemon):
            chunk = next(n for n in daemon.store.names() if n.startswith("c"))
            with open("/dev/null", "rb") as null:
                daemon.store.replace(chunk, null.fileno())

        for spoil, why in ((lose_a_chunk, "is missing"),
                           (damage_the_journal, "wrong checksum"),
                           (lose_the_journal, "there is no journal"),
                           (exchange_a_chunk, "is no memory")):
            with self.subTest(spoil.__name__), \
                    service_store.Daemon(POOL) as daemon:
                job = self.hog(daemon, "a", "--mib", 64, "--buffers", 16)
                daemon.kill()
                daemon.store.settle()
                spoil(daemon)
                daemon.start()
                self.assert_dropped(daemon, why)
                harness.wait_for(
                    lambda: daemon.device()["orphan_bytes"] >= 64 * MIB, 20,
                    "what it holds is known")
                other = self.hog(daemon, "b", "--mib", 64, "--buffers", 16)
                # Left to chance, the last of it may stay for minutes.
                harness.wait_for(lambda: self.left(daemon, "a"), 60,
                                 "all has left once")
                self.restart(daemon)
                self.assert_kept(daemon)
                self.assertIsNone(job.poll(), harness.text_of(job))
                self.end([job, other])
                self.assert_whole(daemon)

    def test_a_store_that_is_full_is_seen_at_the_next_start(self):
        with service_store.Daemon(POOL) as daemon:
            daemon.store.most = 5
            job = self.hog(daemon, "a", "--mib", 64, "--buffers", 16)
            self.restart(daemon)
            self.assert_dropped(daemon, "FileDescriptorStoreMax")
            self.assertIsNone(job.poll(), harness.text_of(job))
            self.end([job])
            self.assert_whole(daemon)

    def test_another_configuration_begins_anew(self):
        with service_store.Daemon(POOL) as daemon:
            job = self.hog(daemon, "a", "--mib", 64)
            daemon._args[1] = f"host:{POOL // 3}"
            self.restart(daemon)
            self.assert_dropped(daemon, "does not fit")
            self.end([job])
            self.assert_whole(daemon, POOL // 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
