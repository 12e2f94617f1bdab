"""Reads *.xplane.pb: an XSpace of planes of lines of events."""

import array
import os

import numpy as np
from google.protobuf.message import DecodeError

from opspeedup import messages, wire
from opspeedup.errors import ProfileError
from opspeedup.operators import Stream, operator_of

HOST = "/host:CPU"
DEVICE = "/device:GPU"
_PS_PER_US = 1e6
_PLANES, _LINES = 1, 3  # Field numbers.


def _parse(kind, data, path):
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise ProfileError(f"{path} is no profile of TensorFlow (XSpace): "
                           f"{error}; copy or record it again") from None
    return message


class _Plane:
    """Names of a plane, and where its lines are in the file."""

    def __init__(self, file, path, begin, end):
        self._file, self._path = file, path
        self.lines, rest = [], []
        for field in wire.Fields(file, path, begin, end):
            number, kind, at, content, end_of_field = field
            if number == _LINES and kind == wire.LENGTH_DELIMITED:
                self.lines.append((content, end_of_field))
            else:
                file.seek(at)
                rest.append(file.read(end_of_field - at))
        plane = _parse(messages.XPlane, b"".join(rest), path)
        self.name = plane.name
        self.stats = {e.key: e.value.name for e in plane.stat_metadata}
        self.events = {e.key: e.value for e in plane.event_metadata}

    def read_lines(self, progress):
        """(whether a line begins, its name, some of its events)"""
        for begin, end in self.lines:
            name = ""
            fields = wire.Fields(self._file, self._path, begin, end)
            for i, data in enumerate(fields.chunks()):
                line = _parse(messages.XLine, data, self._path)
                name = line.name or name
                yield i == 0, name, line.events
                progress(len(data))


def _read_host(plane, operators, progress):
    named = {key: operator_of(value.name)
             for key, value in plane.events.items()}
    wanted = {key: array.array("q") for key, value in named.items() if value}
    for _, _, events in plane.read_lines(progress):
        for event in events:
            durations = wanted.get(event.metadata_id)
            if durations is not None:
                durations.append(event.duration_ps)
        for key, durations in wanted.items():
            if durations:
                operators.add_host(named[key],
                                   np.asarray(durations) / _PS_PER_US)
                del durations[:]


class _DeviceOperators:
    """Which operator a kernel belongs to: the stat tf_op says it."""

    def __init__(self, plane):
        self._plane = plane
        self._tf_op = {k for k, name in plane.stats.items() if name == "tf_op"}

    def of(self, event):
        metadata = self._plane.events.get(event.metadata_id)
        for stats in (event.stats, metadata.stats if metadata else ()):
            for stat in stats:
                if stat.metadata_id in self._tf_op:
                    return operator_of(stat.str_value or self._plane.stats.get(
                        stat.ref_value, ""))
        return None


def _read_device(plane, operators, progress):
    of = _DeviceOperators(plane).of
    stream = Stream(operators)
    for begins, name, events in plane.read_lines(progress):
        if begins:
            stream.flush(ended=True)
        # Other lines repeat the streams' kernels, summed up.
        if name.startswith("Stream"):
            for event in events:
                stream.kernel(of(event), event.duration_ps / _PS_PER_US)
        stream.flush(ended=False)
    stream.flush(ended=True)


def read(path, operators, progress, warn):
    """Adds what the file says to `operators`. Calls progress(bytes) as it
    reads, warn(text) for what the profiler itself complains of. ProfileError:
    truncated, or of another kind."""
    size, seen = os.path.getsize(path), 0
    if size == 0:
        raise ProfileError(f"{path} is empty; record it again")

    def report(count):
        nonlocal seen
        seen += count
        progress(count)

    with open(path, "rb") as file:
        # Complete before anything counts: what is cut off is at the end.
        fields = list(wire.Fields(file, path, 0, size))
        for number, kind, at, begin, end in fields:
            if kind != wire.LENGTH_DELIMITED:
                raise ProfileError(f"{path} is no profile of TensorFlow "
                                   "(XSpace): copy or record it again")
            if number == _PLANES:
                plane = _Plane(file, path, begin, end)
                if plane.name == HOST:
                    _read_host(plane, operators, report)
                elif plane.name.startswith(DEVICE):
                    _read_device(plane, operators, report)
            else:
                file.seek(at)
                space = _parse(messages.XSpace, file.read(end - at), path)
                for text in [*space.errors, *space.warnings]:
                    warn(f"{path}: the profiler says: {text}")
    progress(size - seen)
