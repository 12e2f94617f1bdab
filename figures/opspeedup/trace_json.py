"""Reads *.trace.json.gz: what older profilers write beside the planes.

Event by event, so that any size needs little memory. Trace viewers' files hold
a million events at most: where there are planes, those are read.
"""

import gzip
import json
import os
import re
import zlib

from opspeedup.errors import ProfileError
from opspeedup.operators import Stream, operator_of
from opspeedup.xplane import DEVICE, HOST

_CHUNK = 1 << 20
_LONGEST = 16 << 20  # Of an event: more is no event.
_START = '"traceEvents"'
_GAP = re.compile(r"[\s:,\[]*")  # Before an event.


def _texts(path, progress):
    with open(path, "rb") as raw, gzip.open(raw, "rt", encoding="utf-8") as file:
        done = 0
        while text := file.read(_CHUNK):
            yield text
            progress(raw.tell() - done)
            done = raw.tell()


def _more(texts):
    text = next(texts, "")
    if not text:
        raise EOFError("it ends too early")
    return text


def _events(path, progress):
    """The events, and at last whether the rest of the file is whole."""
    texts, decoder = _texts(path, progress), json.JSONDecoder()
    text = _more(texts)
    while _START not in text:
        text = text[-len(_START):] + _more(texts)
    at = text.index(_START) + len(_START)
    while True:
        at = _GAP.match(text, at).end()
        if text[at:at + 1] == "]":
            break
        try:
            event, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            if len(text) - at > _LONGEST:
                raise
            text, at = text[at:] + _more(texts), 0
            continue
        yield event
    for _ in texts:  # gzip checks its sum at the end.
        pass


class _Reader:
    def __init__(self, operators):
        self._operators = operators
        self._processes, self._threads, self._streams = {}, {}, {}
        self._host = {}
        self._pending = 0

    def add(self, event):
        kind = event.get("ph")
        if kind == "M" and event.get("name") == "process_name":
            self._processes[event["pid"]] = event["args"]["name"]
        elif kind == "M" and event.get("name") == "thread_name":
            self._threads[event["pid"], event["tid"]] = event["args"]["name"]
        elif kind == "X":
            self._complete(event)

    def _complete(self, event):
        process = self._processes.get(event["pid"], "")
        args = event.get("args") or {}
        if process.startswith(HOST):
            operator = operator_of(args.get("long_name") or event["name"])
            if operator:
                self._host.setdefault(operator, []).append(event["dur"])
                self._pending += 1
        elif process.startswith(DEVICE):
            line = event["pid"], event["tid"]
            if self._threads.get(line, "").startswith("Stream"):
                stream = self._streams.setdefault(line, Stream(self._operators))
                stream.kernel(operator_of(args.get("tf_op", "")), event["dur"])
        if self._pending > 100000:
            self.flush(ended=False)

    def flush(self, ended):
        for operator, durations in self._host.items():
            self._operators.add_host(operator, durations)
        self._host, self._pending = {}, 0
        for stream in self._streams.values():
            stream.flush(ended)


def read(path, operators, progress, warn):
    """As xplane.read."""
    del warn
    if os.path.getsize(path) == 0:
        raise ProfileError(f"{path} is empty; record it again")
    reader = _Reader(operators)
    try:
        for event in _events(path, progress):
            reader.add(event)
        reader.flush(ended=True)
    except (EOFError, OSError, zlib.error, KeyError, TypeError, AttributeError,
            ValueError) as error:
        raise ProfileError(
            f"{path} is truncated or no trace of TensorFlow (gzipped JSON with "
            f"traceEvents): {error or type(error).__name__}; copy or record it "
            "again") from None
