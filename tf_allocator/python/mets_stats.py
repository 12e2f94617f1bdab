"""METS' numbers of this process, through the TensorFlow plug-in."""

import ctypes
import os

FIELDS = [
    "live_bytes", "peak_live_bytes", "resident_bytes", "cached_bytes",
    "swapped_bytes", "pinned_bytes", "held_bytes", "evicted_bytes_total",
    "restored_bytes_total", "clean_evictions_total",
    "unobserved_accesses_total", "allocations_total", "cache_hits_total",
    "acquires_total", "waits_total", "wait_ns_total", "waited_ns_total",
    "stalled_ns_total",
]


class _Stats(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [
        (name, ctypes.c_uint64) for name in FIELDS]


def read():
    """A dict of mets_stats' fields; None when the plug-in is not in use."""
    path = os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "")
    if not path.endswith(".so") or not os.path.exists(path):
        return None
    library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    stats = _Stats(size=ctypes.sizeof(_Stats))
    if library.mets_tf_stats(ctypes.byref(stats)) != 0:
        return None
    return {name: getattr(stats, name) for name in FIELDS}
