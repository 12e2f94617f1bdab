"""python -m mets: metsctl, from wherever this package is.

    python -m mets run --job bert --limit 4GiB -- python train.py

Everything behind `mets` is metsctl's; `python -m mets --help` shows it.
"""

import os
import sys

from mets import _library


def main() -> None:
    program = _library.find_program("metsctl")
    if program is None:
        sys.exit("mets: metsctl is not there; build it, or use an installed "
                 "METS")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
