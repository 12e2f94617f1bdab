"""What nobody uses goes back to the machine, and comes again when it is wanted."""

import unittest

import harness

MIB = harness.MIB
HOG = harness.BIN / "mets_hog"


class IdleRelease(unittest.TestCase):
    def memory(self, daemon):
        return {name: harness.memory_bytes([daemon.process.pid], name)
                for name in ("mets-chunk", "mets-extent")}

    def test_memory_without_a_job_goes_back(self):
        with harness.Daemon(64 * MIB, 256 * MIB, "--idle-release", "1s") as daemon:
            for job in ("first", "second"):
                # Twice what there is: half of it is in swap space.
                process = daemon.run(job, [HOG, "--mib", 128, "--buffers", 16,
                                           "--inputs", 2, "--rounds", 200])
                most = {"mets-chunk": 0, "mets-extent": 0}
                while process.poll() is None:
                    now = self.memory(daemon)
                    most = {name: max(most[name], now[name]) for name in most}
                self.assertEqual(process.returncode, 0, harness.text_of(process))
                self.assertGreater(most["mets-chunk"], 32 * MIB)
                self.assertGreater(most["mets-extent"], 32 * MIB)
                harness.wait_for(lambda: not any(self.memory(daemon).values()),
                                 20, "the memory goes back")
            told = daemon.ctl("events").stdout
            self.assertIn("of unused memory to host0", told)
            self.assertIn("of unused swap space to the machine", told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
