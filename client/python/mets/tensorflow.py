"""TensorFlow on memory that metsd shares between programs.

    import mets.tensorflow
    mets.tensorflow.enable()            # before TensorFlow's first op
    model.fit(data, callbacks=[mets.tensorflow.StepMonitor("logs")])

`enable` does in a running program what `metsctl run` does for an unchanged one.
`StepMonitor` tells METS where training steps begin, and shows in TensorBoard
what METS does.

Without METS (METS_DISABLE=1, no metsd) all of this does nothing, and TensorFlow
is as it was.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pathlib
import re
import socket
import sys
import time
from typing import Any

import tensorflow as tf
from tensorflow.python.client import session
from tensorflow.python.eager import context

from mets import _advice
from mets._advice import Advice, LayerAdvice
from mets._library import (Stats, find_library, is_set, library_folders,
                           read_stats)

__all__ = ["Advice", "LayerAdvice", "Stats", "StepMonitor", "advise", "enable",
           "stats"]

_VARIABLE = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"
_LOADER = "libmets_tensorflow.so"  # What metsctl run has TensorFlow load.

_plugin: ctypes.CDLL | None = None  # Once it is loaded.
# The variables of enable's options, and what they were then; empty where
# `metsctl run` has done it all, which goes before any option.
_enabled: dict[str, str | None] = {}


def _plugin_name() -> str:
    """The plug-in's file for this TensorFlow: one for each minor version."""
    minor = re.match(r"\d+\.\d+", tf.__version__)
    cuda = tf.sysconfig.get_build_info().get("is_cuda_build", False)
    return (f"libmets_tensorflow-{minor.group() if minor else '?'}"
            f"{'-cuda' if cuda else ''}.so")


def _loaded() -> ctypes.CDLL | None:
    """The plug-in, where TensorFlow has loaded it already."""
    named = pathlib.Path(os.environ.get(_VARIABLE, ""))
    path = (str(named.parent / _plugin_name()) if named.name == _LOADER
            else find_library(_plugin_name()))
    try:
        return None if path is None else ctypes.CDLL(
            path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None


def _check_alone() -> None:
    """Raises where another plug-in may have TensorFlow's devices."""
    others = [os.environ.get(_VARIABLE, "")]
    if pathlib.Path(others[0]).name == _LOADER:
        others = []
    for folder in [pathlib.Path(tf.__file__).parent.parent, *sys.path]:
        plugins = pathlib.Path(folder, "tensorflow-plugins")
        others += [str(file) for file in sorted(plugins.glob("*.so"))]
    others = [other for other in others if other]
    if others:
        raise RuntimeError(
            "mets.tensorflow.enable(): another TensorFlow plug-in is there "
            f"already, and METS works with none beside it: {others[0]} (unset "
            f"{_VARIABLE}, or take it out of the folder tensorflow-plugins)")


def _has_run() -> bool:
    """Whether TensorFlow has made its devices: it does so for its first op, and
    for each session."""
    existing = context.context_safe()
    if existing is not None and existing._initialized:
        return True
    return any(issubclass(type(found), session.BaseSession)
               and not found._closed for found in gc.get_objects())


def _run_dir() -> str:
    """As libmets has it."""
    named = os.environ.get("METS_RUN_DIR", "")
    user = os.environ.get("XDG_RUNTIME_DIR", "")
    if not named and user and os.geteuid() != 0:
        return f"{user}/mets"
    return named or "/run/mets"


def _connect_error() -> str:
    """Why no metsd can be reached; "" when one can."""
    path = f"{_run_dir()}/fd.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.connect(path)
        except OSError as error:
            return (f"no metsd answers at {path}: {error.strerror or error} "
                    "(start one, or say with METS_RUN_DIR where it is)")
    return ""


def _load() -> tuple[ctypes.CDLL | None, str]:
    """The plug-in, or None and why not."""
    name = _plugin_name()
    path = find_library(name)
    if path is None:
        known = sorted({file.name for folder in library_folders()
                        for file in folder.glob("libmets_tensorflow-*.so")})
        return None, (
            f"this is TensorFlow {tf.__version__}, and METS is not built for "
            f"it: there is no {name}, only {', '.join(known) or 'none'} "
            "(pip install METS again in this environment, or build it for "
            "this TensorFlow: cmake -DMETS_TF_PYTHON=PYTHON)")
    error = _connect_error()
    if error:
        return None, error
    try:
        return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL), ""
    except OSError as problem:
        return None, f"{path} cannot be loaded: {problem}"


def _set_wishes(wishes: dict[str, Any]) -> None:
    for variable, value in wishes.items():
        if value is not None:
            os.environ[variable] = str(value)


def _check_wishes(wishes: dict[str, Any]) -> None:
    """Those of a later call."""
    for variable, value in wishes.items():
        before = _enabled[variable]
        if value is not None and str(value) != before:
            option = variable.removeprefix("METS_").lower()
            raise RuntimeError(
                f"mets.tensorflow.enable({option}={value!r}): METS is enabled "
                f"already, with {option}={before!r}; give all options in the "
                "first call")


def enable(*, job: str | None = None, limit: str | int | None = None,
           guarantee: str | int | None = None, priority: int | None = None,
           weight: int | None = None, wait: str | None = None,
           run_dir: str | None = None, required: bool | None = None) -> bool:
    """Takes TensorFlow's memory from metsd, from now on.

    job, limit, guarantee, priority, weight, wait, run_dir: as the options of
        `metsctl run` (sizes: "4GiB", or bytes); None leaves the variables
        METS_JOB and so on as they are.
    required: whether to raise RuntimeError when there is no METS (metsd is not
        running, the plug-in is missing or built for another TensorFlow); None:
        whether METS_REQUIRED=1. Otherwise one line on stderr says why, and
        TensorFlow stays as it was.

    Returns whether METS is in use; False with METS_DISABLE=1, True without
    doing anything where `metsctl run` has done it all. The process connects to
    metsd when TensorFlow makes its devices, at its first op.

    Raises RuntimeError, always, when TensorFlow has run ops already or has a
    session, when another plug-in is there, or when an earlier call has enabled
    METS with other options.
    """
    global _plugin, _enabled
    if is_set("METS_DISABLE"):
        return False
    wishes = {"METS_JOB": job, "METS_LIMIT": limit, "METS_GUARANTEE": guarantee,
              "METS_PRIORITY": priority, "METS_WEIGHT": weight,
              "METS_WAIT": wait, "METS_RUN_DIR": run_dir}
    if _plugin is None:
        _plugin = _loaded()
    if _plugin is not None:
        if _enabled:
            _check_wishes(wishes)
        return True
    if _has_run():
        raise RuntimeError(
            "mets.tensorflow.enable(): TensorFlow has its devices already; "
            "call it before the program's first op (tf.constant, building a "
            "model, tf.config.list_logical_devices, ...) and session")
    _check_alone()
    _set_wishes(wishes)
    _plugin, error = _load()
    required = is_set("METS_REQUIRED") if required is None else required
    if _plugin is None:
        if required:
            raise RuntimeError(f"METS: {error}")
        print(f"METS: {error}; TensorFlow goes on without METS",
              file=sys.stderr)
        return False
    _enabled = {variable: os.environ.get(variable) for variable in wishes}
    # For the connection, at the first op.
    os.environ["METS_REQUIRED"] = "1" if required else "0"
    return True


def stats() -> Stats | None:
    """METS' numbers of this process; None when METS is not in use, or before
    TensorFlow's first op."""
    plugin = _plugin or _loaded()
    return None if plugin is None else read_stats(plugin.mets_tf_impl_stats)


def advise(model: tf.keras.Model, batch: Any, memory: str | int | None = None,
           bytes_per_second: float | None = None) -> Advice:
    """What to keep, to swap and to recompute in training steps of a Keras model.

    model: built; nothing of it changes.
    batch: one batch: (inputs, labels) for the loss that the model is compiled
        with, or inputs alone.
    memory: what the step may have ("4GiB", or bytes); None: METS_LIMIT.
    bytes_per_second: how fast copies go, one way; None: measured on a host
        device. `metsctl bench` measures a GPU's.

    Runs three forward passes and two backward ones, op by op, and measures what
    each of model.layers leaves for the backward pass (tensors that METS knows:
    on host devices of 1 MiB and more) and how long its forward pass takes. Where
    the step needs more than `memory`, layers are swapped or recomputed, those
    first that cost least time for each byte, until the rest fits. Copies count
    in full, as if no computing hid them. METS itself chooses what to swap:
    "swap" says that recomputing is no gain there. `Advice.apply` recomputes.

    Raises RuntimeError where METS is not in use, ValueError where `memory` or
    `bytes_per_second` cannot be found out, or an argument is none of these.
    TensorFlow's errors go through.
    """
    def known() -> Stats:
        found = stats()
        if found is None:
            raise RuntimeError("mets.tensorflow.advise(): METS is not in use; "
                               "enable() comes first")
        return found

    tf.config.list_logical_devices()  # Connects.
    known()
    return _advice.advise(model, batch, known, _reset_peak, memory,
                          bytes_per_second)


def _reset_peak() -> None:
    device = "GPU:0" if tf.config.list_logical_devices("GPU") else "CPU:0"
    tf.config.experimental.reset_memory_stats(device)


class StepMonitor(tf.keras.callbacks.Callback):
    """A Keras callback: tells METS where training steps begin, and writes what
    METS does as TensorBoard scalars.

    log_dir: TensorBoard's folder; None: nothing is written.
    every: steps from one point of the curves to the next.

    The scalars, of this process: `mets/resident_bytes` and `mets/swapped_bytes`
    (now), `mets/stall_seconds` (a step: waiting for buffers to come back),
    `mets/slowdown` (how many times as long the steps took as they would have
    without any waiting for METS: for a turn, for memory, for buffers).
    Without METS it does nothing.
    """

    def __init__(self, log_dir: str | os.PathLike[str] | None = None,
                 every: int = 10) -> None:
        super().__init__()
        if every < 1:
            raise ValueError(f"StepMonitor: every is {every}; it is at least 1")
        self._log_dir, self._every = log_dir, every
        self._writer: Any = None
        self._steps = 0  # In all calls of fit.
        self._last: tuple[float, Stats] | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._last = None

    def on_train_batch_begin(self, batch: int,
                             logs: dict[str, Any] | None = None) -> None:
        plugin = _plugin or _loaded()
        if plugin is not None:
            plugin.mets_tf_impl_step()
        if self._last is None:
            self._remember()

    def on_train_batch_end(self, batch: int,
                           logs: dict[str, Any] | None = None) -> None:
        self._steps += 1
        if self._steps % self._every != 0 or self._log_dir is None:
            return
        before = self._last
        self._remember()
        if before is not None and self._last is not None:
            self._write(before, self._last)

    def _remember(self) -> None:
        now = stats()
        self._last = None if now is None else (time.monotonic(), now)

    def _write(self, before: tuple[float, Stats],
               now: tuple[float, Stats]) -> None:
        seconds = now[0] - before[0]
        waited = (now[1].waited_ns_total - before[1].waited_ns_total) / 1e9
        stalled = (now[1].stalled_ns_total - before[1].stalled_ns_total) / 1e9
        if self._writer is None:
            self._writer = tf.summary.create_file_writer(str(self._log_dir))
        with self._writer.as_default(step=self._steps):
            tf.summary.scalar("mets/resident_bytes", now[1].resident_bytes)
            tf.summary.scalar("mets/swapped_bytes", now[1].swapped_bytes)
            tf.summary.scalar("mets/stall_seconds", stalled / self._every)
            tf.summary.scalar("mets/slowdown",
                              seconds / max(seconds - waited, 1e-9))
        self._writer.flush()
