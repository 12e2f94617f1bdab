"""PyTorch on memory that metsd shares between programs.

    import mets.torch
    mets.torch.enable()                 # before anything is on the GPU
    model = Model().cuda()
    for batch in batches:
        with mets.torch.step():         # one training step
            loss = train(model, batch)

`enable` takes PyTorch's GPU memory from metsd. `step` says where the program's
steps begin and end: what computes on the GPU belongs into one (a training step,
an evaluation), so that METS may give the GPU to another program between two of
them. What runs outside is safe, but may take time and memory that another
program has the turn for.

Without METS (METS_DISABLE=1, no metsd) all of this does nothing, and PyTorch is
as it was. With it, PyTorch's own statistics of GPU memory
(torch.cuda.memory_allocated() and the like) are not to be had: see `stats`.
CUDA graphs are refused.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from typing import Any, Callable, TypeVar

import torch

from mets._library import CStats, Stats, find_library, is_set, read_stats

__all__ = ["Stats", "enable", "stats", "step"]

_LIBRARY = "libmets_torch.so"
_OUT_OF_MEMORY = "CUDA out of memory. METS:"
_Function = TypeVar("_Function", bound=Callable[..., Any])

_shim: Any = None  # The library, once METS is enabled.
_device = 0
_allocator: Any = None  # PyTorch keeps no reference to the Python object.
_lock = threading.Lock()
_sections = 0  # Threads within a step.
_thread = threading.local()


def _load(path: str) -> ctypes.CDLL:
    # CDLL, not PyDLL: calls that wait must not keep the GIL.
    shim = ctypes.CDLL(path)
    shim.mets_torch_open.argtypes = [ctypes.c_int]
    shim.mets_torch_last_error.restype = ctypes.c_char_p
    shim.mets_torch_leave.restype = None
    shim.mets_torch_hint.restype = None
    shim.mets_torch_stats.argtypes = [ctypes.POINTER(CStats)]
    return shim


def _last_error(shim: ctypes.CDLL) -> str:
    return shim.mets_torch_last_error().decode(errors="replace")


def _connect(device: int) -> tuple[ctypes.CDLL | None, str, str]:
    """The opened library, its path and "", or None, "" and an error."""
    if not torch.backends.cuda.is_built():
        return None, "", "this PyTorch is built without CUDA"
    path = find_library(_LIBRARY)
    if path is None:
        return None, "", (f"{_LIBRARY} is not there (METS_LIBRARY_DIR names "
                          "its folder)")
    try:
        shim = _load(path)
    except (OSError, AttributeError) as error:
        return None, "", f"{path} cannot be used: {error}"
    if shim.mets_torch_open(device) != 0:
        return None, "", _last_error(shim)
    return shim, path, ""


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _set_allocator(shim: ctypes.CDLL, path: str) -> None:
    global _allocator
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        path, "mets_torch_alloc", "mets_torch_free")
    inner = allocator.allocator()
    inner.set_record_stream_fn(_address(shim.mets_torch_record_stream))
    inner.set_begin_allocate_to_pool(_address(shim.mets_torch_begin_pool))
    torch.cuda.memory.change_current_allocator(allocator)
    _allocator = allocator


def _check_untouched() -> None:
    if torch.cuda.is_initialized():
        raise RuntimeError(
            "mets.torch.enable(): CUDA is initialized already; call it before "
            "the program's first use of a GPU")
    if (torch.backends.cuda.is_built() and
            torch.cuda.memory._get_current_allocator().allocator() is not None):
        raise RuntimeError(
            "mets.torch.enable(): the program has set another allocator "
            "(torch.cuda.memory.change_current_allocator) already")


def enable(device: int | None = None, required: bool | None = None) -> bool:
    """Takes PyTorch's GPU memory from metsd, from now on.

    device: which GPU, as in "cuda:0"; None: the first. A process uses one.
    required: whether to raise RuntimeError when there is no METS (metsd is not
        running, does not have this GPU or refuses; the library is missing);
        None: whether METS_REQUIRED=1. Otherwise one line on stderr says why,
        and PyTorch stays as it was.

    Returns whether METS is in use; False with METS_DISABLE=1. Blocks for at
    most 10 s. Raises RuntimeError, always, when CUDA is initialized already, another
    allocator is set, or METS is enabled for another device.
    """
    global _shim, _device
    device = 0 if device is None else device
    if is_set("METS_DISABLE"):
        return False
    if _shim is not None:
        if device == _device:
            return True
        raise RuntimeError(f"mets.torch.enable({device}): METS is enabled for "
                           f"cuda:{_device}, and a process uses one device")
    _check_untouched()
    shim, path, error = _connect(device)
    if shim is None:
        if is_set("METS_REQUIRED") if required is None else required:
            raise RuntimeError(f"METS: {error}")
        print(f"METS: {error}; PyTorch goes on without METS", file=sys.stderr)
        return False
    _set_allocator(shim, path)
    _shim, _device = shim, device
    return True


def stats() -> Stats | None:
    """METS' numbers of this process; None when METS is not in use."""
    if _shim is None:
        return None
    found = read_stats(_shim.mets_torch_stats)
    if found is None:
        raise RuntimeError(f"METS: {_last_error(_shim)}")
    return found


def _begin(shim: Any) -> None:
    """Waits for this program's turn. A step begins, unless another thread is
    within one."""
    global _sections
    # Making the context takes seconds, and needs no turn.
    torch.cuda.init()
    with _lock:
        if _sections == 0:
            shim.mets_torch_hint()
        _sections += 1
    if shim.mets_torch_enter() != 0:
        _end_section()
        raise RuntimeError(f"METS: {_last_error(shim)}")


def _end_section() -> None:
    global _sections
    with _lock:
        _sections -= 1


class _NoStep:
    """What `step` returns without METS."""

    __slots__ = ()

    def __enter__(self) -> _NoStep:
        return self

    def __exit__(self, kind: Any, error: BaseException | None,
                 trace: Any) -> None:
        pass

    def __call__(self, function: _Function) -> _Function:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with step():  # METS may have been enabled since.
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


class _Step(_NoStep):
    """What `step` returns with METS; has no state, so that one object does."""

    __slots__ = ()

    def __enter__(self) -> _Step:
        depth = getattr(_thread, "depth", 0)
        if depth == 0:
            _begin(_shim)
        _thread.depth = depth + 1
        return self

    def __exit__(self, kind: Any, error: BaseException | None,
                 trace: Any) -> None:
        _thread.depth -= 1
        if _thread.depth > 0:
            return
        _shim.mets_torch_leave()
        _end_section()
        if (isinstance(error, RuntimeError) and _OUT_OF_MEMORY in str(error)
                and not isinstance(error, torch.OutOfMemoryError)):
            raise torch.OutOfMemoryError(str(error)) from error


_NO_STEP = _NoStep()
_STEP = _Step()


def step() -> _NoStep:
    """One step of the program: `with mets.torch.step():`, or a decorator.

    Entering waits until it is this program's turn on the GPU; leaving does not
    wait, not even for the GPU. Steps nest and count once. When the memory of a
    step cannot be had, the step ends with torch.OutOfMemoryError, whose text
    says who holds it. Raises RuntimeError in a forked child.
    """
    return _NO_STEP if _shim is None else _STEP
