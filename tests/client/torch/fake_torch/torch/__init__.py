"""As much of PyTorch as mets.torch touches, without a GPU: the pluggable
allocator is called by the tests in place of tensors."""

import ctypes
import types


class OutOfMemoryError(RuntimeError):
    pass


class _Inner:
    """torch._C._CUDAPluggableAllocator: notes what is set."""

    def __init__(self):
        self.functions = {}

    def set_record_stream_fn(self, address):
        self.functions["record_stream"] = address

    def set_begin_allocate_to_pool(self, address):
        self.functions["begin_allocate_to_pool"] = address


class _CUDAAllocator:
    def __init__(self, allocator):
        self._allocator = allocator

    def allocator(self):
        return self._allocator


class CUDAPluggableAllocator(_CUDAAllocator):
    def __init__(self, path, alloc, free):
        library = ctypes.CDLL(path)
        super().__init__(_Inner())
        for name, symbol in (("alloc", alloc), ("free", free)):
            self._allocator.functions[name] = ctypes.cast(
                getattr(library, symbol), ctypes.c_void_p).value


_current = None


def _change_current_allocator(allocator):
    global _current
    if _current is not None:
        raise RuntimeError("Can't swap an already initialized allocator")
    _current = allocator.allocator()


def _get_current_allocator():
    return _CUDAAllocator(_current)


initialized = False
built = True
cuda = types.SimpleNamespace(
    init=lambda: None,
    is_initialized=lambda: initialized,
    memory=types.SimpleNamespace(
        CUDAPluggableAllocator=CUDAPluggableAllocator,
        change_current_allocator=_change_current_allocator,
        _get_current_allocator=_get_current_allocator))
backends = types.SimpleNamespace(
    cuda=types.SimpleNamespace(is_built=lambda: built))


def alloc(size, stream=0):
    """What a tensor would call."""
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                                ctypes.c_void_p)(_current.functions["alloc"])
    return function(size, 0, stream)
