"""Where METS' libraries and programs are, and its numbers of this process."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import pathlib

_PACKAGE = pathlib.Path(__file__).absolute().parent


@dataclasses.dataclass(frozen=True)
class Stats:
    """This process's memory on the device: mets_stats of mets.h.

    Bytes, unless the name says otherwise; `_total` counts since the start.
    """

    live_bytes: int  # of live allocations
    peak_live_bytes: int
    resident_bytes: int  # of live buffers with memory behind them
    cached_bytes: int  # kept for reuse
    swapped_bytes: int
    pinned_bytes: int
    held_bytes: int
    evicted_bytes_total: int  # copied to swap space
    restored_bytes_total: int
    clean_evictions_total: int  # buffers that left without a copy
    unobserved_accesses_total: int
    allocations_total: int
    cache_hits_total: int  # allocations without a request
    acquires_total: int  # requests to the daemon
    waits_total: int  # ops and allocations that waited
    wait_ns_total: int  # nanoseconds
    waited_ns_total: int  # nanoseconds in which ops waited: turn, memory, buffers
    stalled_ns_total: int  # the part in which buffers had to come back


class CStats(ctypes.Structure):
    """mets_stats itself; `size` is the caller's to set."""

    _fields_ = [("size", ctypes.c_size_t)] + [
        (field.name, ctypes.c_uint64) for field in dataclasses.fields(Stats)]


def read_stats(function: ctypes._CFuncPtr) -> Stats | None:
    """Calls a C function that fills mets_stats; None when that fails."""
    raw = CStats(size=ctypes.sizeof(CStats))
    if function(ctypes.byref(raw)) != 0:
        return None
    return Stats(**{field.name: getattr(raw, field.name)
                    for field in dataclasses.fields(Stats)})


def is_set(variable: str) -> bool:
    """Whether an environment variable switches something on."""
    return os.environ.get(variable, "") not in ("", "0")


def library_folders() -> list[pathlib.Path]:
    """Where METS' libraries may be, the likeliest first."""
    named = os.environ.get("METS_LIBRARY_DIR", "")
    if named:
        return [pathlib.Path(named)]
    above = _PACKAGE.parent.parent
    return [_PACKAGE / "lib",  # a wheel
            above / "lib",  # a bundle
            above,  # installed by cmake: lib/mets/python/mets
            _build() / "lib"]


def find_library(name: str) -> str | None:
    """The path of a library of METS; None when it is nowhere."""
    return _first(name, library_folders())


def find_program(name: str) -> str | None:
    """The path of a program of METS; None when it is nowhere."""
    above = _PACKAGE.parent.parent
    return _first(name, [_PACKAGE / "bin", above / "bin",
                         above.parent.parent / "bin", _build() / "bin"])


def _build() -> pathlib.Path:
    """The build folder of a checkout: this file is in client/python/mets."""
    return _PACKAGE.resolve().parent.parent.parent / "build"


def _first(name: str, folders: list[pathlib.Path]) -> str | None:
    for folder in folders:
        if (folder / name).exists():
            return str(folder / name)
    return None
