"""The metrics of docs/metrics.md, and the program that checks Prometheus files."""

import os
import pathlib
import re
import shutil

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("METS_BUILD_DIR", ROOT / "build"))


def documented():
    """{name: (type, labels)} of all rows of the document's tables."""
    metrics = {}
    for line in (ROOT / "docs" / "metrics.md").read_text().splitlines():
        row = [cell.strip() for cell in line.strip("|").split("|")]
        match = re.fullmatch(r"`(mets_[a-z_]+)`", row[0])
        if match is None:
            continue
        name, (kind, labels) = match[1], row[1:3]
        assert name not in metrics, f"{name} stands there twice"
        assert len(row) == 5 and row[3] and row[4], f"{name}: an empty cell"
        metrics[name] = (kind, frozenset(filter(None, labels.split(", "))))
    return metrics


def program(name):
    """The path of a program of Prometheus' package; None when it is nowhere."""
    unpacked = BUILD / "prometheus" / "usr" / "bin" / name
    return str(unpacked) if unpacked.exists() else shutil.which(name)
