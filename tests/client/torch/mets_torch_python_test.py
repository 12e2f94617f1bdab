"""mets.torch on a fake torch, a fake driver and the fake libmets.

usage: mets_torch_python_test.py LIBMETS_TORCH FAKE_METS FAKE_LIBCUDA

A process enables METS once, so every test runs its program in a fresh one.
"""

import os
import pathlib
import subprocess
import sys
import textwrap
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LIBRARY = FAKE_METS = FAKE_LIBCUDA = ""

PRELUDE = f"""
import ctypes, os, sys, threading
sys.path[:0] = [{str(HERE / "fake_torch")!r}, {str(ROOT / "client/python")!r}]
ctypes.CDLL(os.environ["FAKE_LIBCUDA"])  # Found by its name from now on.
import torch
import mets.torch
def calls():
    fake = ctypes.CDLL(os.environ["METS_LIBRARY"])
    fake.fake_mets_calls.restype = ctypes.c_char_p
    return fake.fake_mets_calls().decode().split("\\n")[:-1]
"""


def run(program, **environment):
    """(exit status, stdout, stderr) of the program."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith("METS_")}
    env.update(METS_LIBRARY_DIR=os.path.dirname(LIBRARY),
               METS_LIBRARY=FAKE_METS, FAKE_LIBCUDA=FAKE_LIBCUDA,
               FAKE_METS_CALLS="1", PYTHONDONTWRITEBYTECODE="1",
               **environment)
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(program)], env=env,
        capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


class MetsTorchTest(unittest.TestCase):
    def check(self, program, **environment):
        """Runs a program that must succeed silently."""
        status, out, err = run(program, **environment)
        self.assertEqual((status, out, err), (0, "", ""))

    def test_enable_sets_an_allocator_of_the_first_gpu(self):
        self.check("""
            assert mets.torch.enable() is True
            assert calls() == [
                "device GPU-00010203-0405-0607-0809-0a0b0c0d0e0f gated"]
            assert set(torch._current.functions) == {
                "alloc", "free", "record_stream", "begin_allocate_to_pool"}
            assert torch.alloc(100) > 0
            assert calls() == ["alloc 100 held 1"]
        """)

    def test_enable_attaches_the_gpu_that_is_named_and_only_that(self):
        self.check("""
            assert mets.torch.enable(1)
            assert calls()[0].startswith("device MIG-1011")
            assert mets.torch.enable(1)
            try:
                mets.torch.enable()
            except RuntimeError as error:
                assert "enabled for cuda:1" in str(error), error
            else:
                sys.exit("enabled for two devices")
        """)

    def test_enable_after_cuda_is_refused_even_if_not_required(self):
        self.check("""
            torch.initialized = True
            try:
                mets.torch.enable(required=False)
            except RuntimeError as error:
                assert "first use of a GPU" in str(error), error
            else:
                sys.exit("enabled too late")
        """)

    def test_enable_beside_another_allocator_is_refused(self):
        self.check("""
            memory = torch.cuda.memory
            memory.change_current_allocator(memory.CUDAPluggableAllocator(
                os.environ["METS_LIBRARY"], "mets_alloc", "mets_free"))
            try:
                mets.torch.enable()
            except RuntimeError as error:
                assert "another allocator" in str(error), error
            else:
                sys.exit("enabled beside another allocator")
        """)

    def goes_on(self, program, why, **environment):
        program = textwrap.dedent(program) + "assert torch._current is None\n"
        status, out, err = run(program, **environment)
        self.assertEqual((status, out), (0, ""), err)
        self.assertEqual(err.count("\n"), 1)
        self.assertIn(why, err)
        self.assertIn("PyTorch goes on without METS", err)

    def test_without_a_daemon_one_line_and_pytorch_goes_on(self):
        self.goes_on("""
            assert mets.torch.enable() is False
            with mets.torch.step():
                pass
            assert mets.torch.stats() is None
            """, "no metsd", FAKE_METS_OPEN="no metsd")

    def test_without_a_driver_a_library_or_cuda_pytorch_goes_on(self):
        program = "assert mets.torch.enable() is False\n"
        self.goes_on(program, "sees 0 GPUs", FAKE_CUDA_DEVICES="0")
        self.goes_on("os.environ['METS_LIBRARY_DIR'] = '/nonexistent'\n" +
                     program, "libmets_torch.so is not there")
        self.goes_on("torch.built = False\n" + program, "without CUDA")

    def test_without_a_daemon_required_is_an_error(self):
        program = """
            try:
                mets.torch.enable({})
            except RuntimeError as error:
                assert "no metsd" in str(error), error
            else:
                sys.exit("went on")
        """
        self.check(program.format("required=True"), FAKE_METS_OPEN="no metsd")
        self.check(program.format(""), FAKE_METS_OPEN="no metsd",
                   METS_REQUIRED="1")

    def test_disabled_nothing_is_touched(self):
        self.check("""
            assert mets.torch.enable(required=True) is False
            assert torch._current is None
            with mets.torch.step():
                pass
            assert mets.torch.stats() is None
            assert calls() == []
        """, METS_DISABLE="1")

    def test_a_step_is_a_hint_and_a_section_and_nests(self):
        self.check("""
            mets.torch.enable(); calls()
            with mets.torch.step():
                with mets.torch.step():
                    pass
                assert calls() == ["hint", "enter"]
            assert calls() == ["leave"]
            with mets.torch.step():
                pass
            assert calls() == ["hint", "enter", "leave"]
        """)

    def test_a_decorator_from_before_enable_works(self):
        self.check("""
            @mets.torch.step()
            def train(a, *, b):
                "Trains."
                return a + b
            assert train(1, b=2) == 3 and train.__doc__ == "Trains."
            mets.torch.enable(); calls()
            assert train(1, b=2) == 3
            assert calls() == ["hint", "enter", "leave"]
        """)

    def test_a_step_that_fails_is_left(self):
        self.check("""
            mets.torch.enable(); calls()
            try:
                with mets.torch.step():
                    raise KeyError("x")
            except KeyError:
                pass
            assert calls() == ["hint", "enter", "leave"]
        """)

    def test_enabling_within_a_step_leaves_nothing_entered(self):
        self.check("""
            with mets.torch.step():
                mets.torch.enable()
            assert calls()[1:] == []
            with mets.torch.step():
                pass
            assert calls() == ["hint", "enter", "leave"]
        """)

    def test_a_step_beside_another_threads_gives_no_hint(self):
        self.check("""
            mets.torch.enable(); calls()
            def other():
                with mets.torch.step():
                    pass
            with mets.torch.step():
                thread = threading.Thread(target=other)
                thread.start(); thread.join()
            assert calls() == ["hint", "enter", "enter", "leave", "leave"]
        """)

    def test_out_of_memory_is_pytorchs_error_with_the_text_of_mets(self):
        self.check("""
            mets.torch.enable(); calls()
            try:
                with mets.torch.step():
                    # As PyTorch translates what mets_torch_alloc throws.
                    raise RuntimeError("CUDA out of memory. METS: a holds it")
            except torch.OutOfMemoryError as error:
                assert "a holds it" in str(error)
            assert calls() == ["hint", "enter", "leave"]
            try:
                with mets.torch.step():
                    raise RuntimeError("another")
            except RuntimeError as error:
                assert type(error) is RuntimeError
        """)

    def test_stats_are_those_of_libmets(self):
        self.check("""
            mets.torch.enable()
            torch.alloc(1 << 20)
            stats = mets.torch.stats()
            assert stats.live_bytes == stats.held_bytes == 1 << 20
            assert stats.allocations_total == 1
        """)


if __name__ == "__main__":
    LIBRARY, FAKE_METS, FAKE_LIBCUDA = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1])
