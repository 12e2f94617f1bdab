"""Replays a trace of allocations through libmets: replay.py LIBMETS TRACE.

Prints {"live": …, "resident": …}: bytes asked for at the peak, and the most that
live buffers ever had behind them. TRACE: CSV with t_us,op,block,bytes, op being
malloc or free (others are skipped).
"""

import csv
import ctypes
import json
import lzma
import sys


class Options(ctypes.Structure):  # mets_alloc_options
    _fields_ = [("size", ctypes.c_size_t), ("bytes", ctypes.c_uint64),
                ("align", ctypes.c_uint64), ("stream", ctypes.c_void_p),
                ("mobility", ctypes.c_int), ("deadline_ms", ctypes.c_int64)]


class Stats(ctypes.Structure):  # mets_stats
    _fields_ = [("size", ctypes.c_size_t), ("live", ctypes.c_uint64),
                ("peak_live", ctypes.c_uint64), ("resident", ctypes.c_uint64),
                ("more", ctypes.c_uint64 * 13)]


def main(library, trace):
    mets = ctypes.CDLL(library)
    mets.mets_last_error.restype = ctypes.c_char_p
    mets.mets_free.argtypes = [ctypes.c_void_p] * 3
    mets.mets_free.restype = None

    def check(status):
        if status != 0:
            sys.exit(mets.mets_last_error().decode())

    client, device = ctypes.c_void_p(), ctypes.c_void_p()
    check(mets.mets_open(None, ctypes.byref(client)))
    check(mets.mets_device_open(client, None, 2, ctypes.byref(device)))
    check(mets.mets_gate_enter(device))
    stats = Stats(ctypes.sizeof(Stats))
    blocks, resident = {}, 0
    with lzma.open(trace, "rt") as file:
        for row in csv.DictReader(file):
            if row["op"] == "malloc":
                options = Options(ctypes.sizeof(Options), int(row["bytes"]), 512,
                                  None, 1, -1)
                address = ctypes.c_void_p()
                check(mets.mets_alloc(device, ctypes.byref(options),
                                      ctypes.byref(address)))
                blocks[row["block"]] = address
                if int(row["bytes"]) >= 1 << 20:
                    mets.mets_get_stats(device, ctypes.byref(stats))
                    resident = max(resident, stats.resident)
            elif row["op"] == "free" and row["block"] in blocks:
                mets.mets_free(device, blocks.pop(row["block"]), None)
    mets.mets_get_stats(device, ctypes.byref(stats))
    print(json.dumps({"live": stats.peak_live, "resident": resident}))


main(*sys.argv[1:])
