"""How long operators took in one run."""

import dataclasses
import math
import re

import numpy as np

# As TensorFlow's profiler tells operators from other events: "name:Type".
_OPERATOR = re.compile(
    r"([A-Za-z0-9.][A-Za-z0-9_.\\/>-]*):([A-Za-z_][A-Za-z0-9_]*)")


# oneDNN's kernels on processors stand for the operators that GPUs have.
_ONEDNN = re.compile(r"_Mkl(?:Native)?(Fused)?")


def operator_of(event_name):
    """("name", "Type") of an event that is an operator, else None. oneDNN's
    _MklNativeFusedConv2D, _MklMatMul, … are _FusedConv2D, MatMul, …"""
    match = _OPERATOR.fullmatch(event_name)
    if match is None:
        return None
    name, kind = match.groups()
    fused = _ONEDNN.match(kind)
    if fused:
        kind = ("_Fused" if fused[1] else "") + kind[fused.end():]
    return name, kind


@dataclasses.dataclass
class Times:
    """Moments of durations in microseconds, without keeping them."""
    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # Sum of squared distances from the mean.
    least: float = math.inf
    most: float = 0.0

    def add(self, durations):
        """Chan, Golub and LeVeque's update by a batch."""
        batch = np.asarray(durations, np.float64)
        if batch.size == 0:
            return
        mean = float(batch.mean())
        squares = float(((batch - mean) ** 2).sum())
        count = self.count + batch.size
        apart = mean - self.mean
        self.squares += squares + apart**2 * self.count * batch.size / count
        self.mean += apart * batch.size / count
        self.count = count
        self.least = min(self.least, float(batch.min()))
        self.most = max(self.most, float(batch.max()))

    @property
    def total(self):
        return self.mean * self.count

    @property
    def spread(self):
        """The sample's standard deviation; 0 for one."""
        if self.count < 2:
            return 0.0
        return math.sqrt(self.squares / (self.count - 1))


class Operators:
    """All operators of one run, by type or by name.

    What ran on a device counts with its time there: one execution is the
    kernels that follow each other in a stream for one operator. What has no
    kernel counts with its time on the host.
    """

    def __init__(self, by_name=False):
        self._by_name = by_name
        self._host, self._device = {}, {}

    def _key(self, operator):
        return ":".join(operator) if self._by_name else operator[1]

    def add_host(self, operator, durations):
        self._host.setdefault(self._key(operator), Times()).add(durations)

    def add_device(self, operator, durations):
        self._device.setdefault(self._key(operator), Times()).add(durations)

    def times(self):
        """{operator: (Times, "host" or "device")}"""
        result = {key: (times, "host") for key, times in self._host.items()}
        result.update((key, (times, "device"))
                      for key, times in self._device.items())
        return result


class Stream:
    """Joins a device stream's kernels to executions of operators."""

    def __init__(self, operators):
        self._operators = operators
        self._last, self._us, self._done = None, 0.0, {}

    def kernel(self, operator, us):
        """The next one of the stream; `operator` is None for none's."""
        if operator != self._last:
            self._end()
            self._last = operator
        self._us += us

    def _end(self):
        if self._last is not None:
            self._done.setdefault(self._last, []).append(self._us)
        self._us = 0.0

    def flush(self, ended):
        """Hands over what is complete; all of it when the stream `ended`."""
        if ended:
            self._end()
            self._last = None
        for operator, durations in self._done.items():
            self._operators.add_device(operator, durations)
        self._done = {}
