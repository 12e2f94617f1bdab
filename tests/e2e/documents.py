"""The commands in documents: fenced blocks whose first line is ```sh KIND.

No kind: any user's. jobs: a job `first` runs on host0. root: as root on a machine
with systemd. build: build METS. walk: tests/ops/console_test.py's."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GUIDES = ("install", "first_shared_job", "tune", "upgrade", "troubleshoot",
          "operator_speedups")


def commands(guide, kind=""):
    """The lines of all blocks of that kind in docs/GUIDE.md."""
    text = (ROOT / "docs" / f"{guide}.md").read_text()
    blocks = re.findall(rf"^```sh{' ' + kind if kind else ''}\n(.*?)^```$",
                        text, re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line]


def programs(guide):
    """{name: text} of the blocks whose first line is ```python NAME."""
    text = (ROOT / "docs" / f"{guide}.md").read_text()
    return dict(re.findall(r"^```python (\S+)\n(.*?)^```$", text, re.M | re.S))
