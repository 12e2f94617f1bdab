"""Finds the files of a recorded run and reads its operators."""

import pathlib

from opspeedup import trace_json, xplane
from opspeedup.errors import ProfileError
from opspeedup.operators import Operators

_KINDS = {".xplane.pb": xplane.read, ".trace.json.gz": trace_json.read}
_HOW = ("record with tf.keras.callbacks.TensorBoard(FOLDER, "
        "profile_batch=(FIRST, LAST))")


def _files(folder):
    """The planes of a folder, of all hosts; without any, its traces."""
    for ending in _KINDS:
        found = sorted(folder.glob("*" + ending))
        if found:
            return found
    return []


def find(path):
    """The files of a run: `path` is a file, the folder with the files, or any
    folder above it; of several recordings the last one, by name."""
    path = pathlib.Path(path)
    if path.is_file():
        if any(path.name.endswith(ending) for ending in _KINDS):
            return [path]
        raise ProfileError(f"{path} is neither an *.xplane.pb nor a "
                           "*.trace.json.gz; name one, or its folder")
    if not path.is_dir():
        raise ProfileError(f"there is no {path}; {_HOW}")
    folders = [path, *sorted(path.glob("**/plugins/profile/*/"),
                             key=lambda folder: folder.name, reverse=True)]
    for folder in folders:
        if files := _files(folder):
            return files
    raise ProfileError(f"{path} has no profile, plugins/profile/*/*.xplane.pb; "
                       + _HOW)


def read(path, by_name=False, progress=lambda count: None,
         warn=lambda text: None):
    """{operator: (Times, "host" or "device")} of a run. ProfileError: it cannot
    be read or has no operators."""
    files = find(path)
    operators = Operators(by_name)
    for file in files:
        for ending, reader in _KINDS.items():
            if file.name.endswith(ending):
                reader(str(file), operators, progress, warn)
    times = operators.times()
    if not times:
        raise ProfileError(
            f"{files[0]} has no TensorFlow operators: was a training step "
            "within profile_batch, and host_tracer_level 2 (the default)?")
    return times
