"""What to keep, to swap and to recompute: behind mets.tensorflow.advise."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
import time
from typing import Any, Callable, Iterator

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from mets._library import Stats

# Stateful ops that do the same when they run again within a step: they read, or
# run functions, whose own ops count.
_REPEATABLE = {"Placeholder", "ReadVariableOp", "ResourceGather",
               "PartitionedCall", "StatefulPartitionedCall", "Case", "If",
               "While"}
_MIB = 1 << 20


def size_of(text: str | int) -> int:
    """Bytes of "192MiB", "4GiB", "4096". Raises ValueError."""
    found = re.fullmatch(r"(\d+)(|B|KiB|MiB|GiB|TiB)", str(text).strip())
    if found is None:
        raise ValueError(f"{text!r} is no size: 192MiB, 4GiB or bytes")
    return int(found[1]) << 10 * ["", "KiB", "MiB", "GiB", "TiB"].index(
        found[2].replace("B", "", found[2] == "B"))


@dataclasses.dataclass(frozen=True)
class LayerAdvice:
    """One of the model's layers, and what to do about it."""

    name: str
    kept_bytes: int  # what its forward pass leaves for the backward pass
    output_bytes: int  # the part of it that recomputing does not save
    forward_seconds: float  # recomputing takes as long
    copy_seconds: float  # of kept_bytes, out and back
    # Whether it does the same again: no random numbers, no updates of state.
    recomputable: bool
    choice: str = "keep"  # or "swap", "recompute"


class Advice:
    """What `mets.tensorflow.advise` has found; str() of it is a table."""

    def __init__(self, model: tf.keras.Model, layers: list[LayerAdvice],
                 peak_bytes: int, memory_bytes: int,
                 bytes_per_second: float) -> None:
        self.model = model
        self.layers = layers
        self.peak_bytes = peak_bytes  # of forward and backward pass
        self.memory_bytes = memory_bytes  # that they may have
        self.bytes_per_second = bytes_per_second  # one way

    def apply(self) -> list[str]:
        """Has the model recompute the layers whose choice is "recompute", from
        its next training step on (tf.recompute_grad). Returns their names."""
        names = [layer.name for layer in self.layers
                 if layer.choice == "recompute"]
        for name in names:
            layer = self.model.get_layer(name)
            object.__setattr__(layer, "call", _recomputing(layer.call))
        if names:
            self.model.train_function = None  # It is traced anew.
        return names

    def __str__(self) -> str:
        lines = [f"the step needs {self.peak_bytes / _MIB:.0f} MiB and may "
                 f"have {self.memory_bytes / _MIB:.0f} MiB; copies at "
                 f"{self.bytes_per_second / 1e9:.1f} GB/s",
                 f"{'layer':<24}{'keeps':>12}{'copy':>12}{'recompute':>12}"]
        for layer in self.layers:
            again = (f"{1e3 * layer.forward_seconds:.2f} ms"
                     if layer.recomputable else "-")
            lines.append(
                f"{layer.name:<24}{layer.kept_bytes / _MIB:>8.1f} MiB"
                f"{1e3 * layer.copy_seconds:>9.2f} ms{again:>12}"
                f"  {layer.choice}")
        return "\n".join(lines)


@dataclasses.dataclass
class _Seen:
    kept_bytes: int = 0
    output_bytes: int = 0
    seconds: float = 0.0
    recomputable: bool = True


def _now(stats: Callable[[], Stats]) -> tuple[float, int]:
    """Seconds without waits for METS, and the bytes that are live."""
    if tf.config.list_logical_devices("GPU"):
        tf.test.experimental.sync_devices()
    now = stats()
    return time.monotonic() - now.waited_ns_total / 1e9, now.live_bytes


def _repeats(call: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    """Whether a second run does the same as the first and nothing else."""
    graph = tf.function(call).get_concrete_function(*args, **kwargs).graph
    definition = graph.as_graph_def()
    nodes = list(definition.node)
    for function in definition.library.function:
        nodes += function.node_def
    for node in nodes:
        op = op_def_registry.get(node.op)
        if op is not None and op.is_stateful and node.op not in _REPEATABLE:
            return False
    return True


def _recomputing(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, whose inside the backward pass computes again."""
    @functools.wraps(call)
    def again(*args: Any, **kwargs: Any) -> Any:
        flat = tf.nest.flatten((args, kwargs))
        places = [i for i, value in enumerate(flat) if tf.is_tensor(value)]

        # tf.recompute_grad takes tensors alone, by position.
        def run(*tensors: Any) -> Any:
            values = list(flat)
            for place, tensor in zip(places, tensors):
                values[place] = tensor
            same_args, same_kwargs = tf.nest.pack_sequence_as(
                (args, kwargs), values)
            return call(*same_args, **same_kwargs)

        return tf.recompute_grad(run)(*(flat[place] for place in places))

    return again


@contextlib.contextmanager
def _state_kept(model: tf.keras.Model) -> Iterator[None]:
    """What forward passes change is afterwards as it was."""
    before = [(variable, variable.numpy())
              for variable in model.non_trainable_variables]
    try:
        yield
    finally:
        for variable, value in before:
            variable.assign(value)


@contextlib.contextmanager
def _calls_replaced(layers: list[Any],
                    wrap: Callable[[Any], Any]) -> Iterator[None]:
    for layer in layers:
        object.__setattr__(layer, "call", wrap(layer))
    try:
        yield
    finally:
        for layer in layers:
            object.__delattr__(layer, "call")


def _measure(model: tf.keras.Model, inputs: Any, labels: Any,
             stats: Callable[[], Stats], seen: dict[str, _Seen]) -> None:
    """One forward and backward pass, op by op; adds what layers do to `seen`."""
    def wrap(layer: Any) -> Any:
        call, found = layer.call, seen[layer.name]

        @functools.wraps(call)
        def measured(*args: Any, **kwargs: Any) -> Any:
            start, live = _now(stats)
            result = call(*args, **kwargs)
            end, live_now = _now(stats)
            found.seconds += end - start
            found.kept_bytes += max(live_now - live, 0)
            found.output_bytes += sum(
                size for size in (t.dtype.size * t.shape.num_elements()
                                  for t in tf.nest.flatten(result))
                if size >= _MIB)
            return result

        return measured

    with _calls_replaced(model.layers, wrap):
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            loss = (model.compute_loss(inputs, labels, outputs)
                    if labels is not None else
                    tf.add_n([tf.reduce_sum(t)
                              for t in tf.nest.flatten(outputs)]))
        tape.gradient(loss, model.trainable_variables)


def _note_repeats(model: tf.keras.Model, inputs: Any,
                  seen: dict[str, _Seen]) -> None:
    """A forward pass that finds out which layers may run again."""
    def wrap(layer: Any) -> Any:
        call, found = layer.call, seen[layer.name]

        @functools.wraps(call)
        def traced(*args: Any, **kwargs: Any) -> Any:
            found.recomputable &= _repeats(call, args, kwargs)
            return call(*args, **kwargs)

        return traced

    with _calls_replaced(model.layers, wrap):
        model(inputs, training=True)


def _host_bandwidth() -> float:
    """Bytes a second of copies in host memory: the best of some."""
    source = np.ones(64 * _MIB, np.uint8)
    target = np.zeros_like(source)
    best = float("inf")
    for _ in range(4):
        start = time.monotonic()
        np.copyto(target, source)
        best = min(best, time.monotonic() - start)
    return source.nbytes / best


def _choose(layers: list[LayerAdvice], excess: int) -> list[LayerAdvice]:
    """Whatever costs least time for each byte, until the excess is gone."""
    options = []
    for layer in layers:
        inner = layer.kept_bytes - layer.output_bytes
        if layer.kept_bytes > 0:
            options.append((layer.copy_seconds / layer.kept_bytes,
                            layer.name, "swap", layer.kept_bytes))
        if layer.recomputable and inner > 0:
            options.append((layer.forward_seconds / inner, layer.name,
                            "recompute", inner))
    chosen: dict[str, str] = {}
    for _, name, choice, saved in sorted(options):
        if excess > 0 and name not in chosen:
            chosen[name] = choice
            excess -= saved
    return [dataclasses.replace(layer, choice=chosen.get(layer.name, "keep"))
            for layer in layers]


def advise(model: tf.keras.Model, batch: Any, stats: Callable[[], Stats],
           reset_peak: Callable[[], Any], memory: str | int | None,
           bytes_per_second: float | None) -> Advice:
    """See mets.tensorflow.advise."""
    memory = os.environ.get("METS_LIMIT", "") if memory is None else memory
    if memory == "":
        raise ValueError("advise: how much memory may the training have? "
                         "memory=\"4GiB\", or METS_LIMIT")
    memory_bytes = size_of(memory)
    if bytes_per_second is None:
        if tf.config.list_logical_devices("GPU"):
            raise ValueError("advise: how fast are copies from and to the GPU? "
                             "bytes_per_second=...; metsctl bench measures it")
        bytes_per_second = _host_bandwidth()
    if bytes_per_second <= 0:
        raise ValueError(f"advise: bytes_per_second is {bytes_per_second}; it "
                         "is above 0")
    if isinstance(batch, tf.data.Dataset):
        raise ValueError("advise: the batch is a dataset; it is one element of "
                         "it: next(iter(dataset))")
    if isinstance(batch, tuple) and len(batch) != 2:
        raise ValueError(f"advise: the batch has {len(batch)} parts; it is "
                         "(inputs, labels), or inputs alone")
    inputs, labels = batch if isinstance(batch, tuple) else (batch, None)
    inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)

    seen = {layer.name: _Seen() for layer in model.layers}
    with _state_kept(model):
        _note_repeats(model, inputs, seen)
        _measure(model, inputs, labels, stats, {name: _Seen() for name in seen})
        reset_peak()
        _measure(model, inputs, labels, stats, seen)
    peak = stats().peak_live_bytes
    layers = [
        LayerAdvice(name, found.kept_bytes, found.output_bytes, found.seconds,
                    2 * found.kept_bytes / bytes_per_second,
                    found.recomputable)
        for name, found in seen.items()]
    return Advice(model, _choose(layers, peak - memory_bytes), peak,
                  memory_bytes, bytes_per_second)
