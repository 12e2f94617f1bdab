"""Plots what `mets-sim --residency FILE` writes.

    sh figures/python.sh figures/residency.py FILE.csv NAME

writes NAME.pdf and NAME.png: the jobs' resident bytes over time, one upon the
other, so that the upper edge is what they hold together.
"""

import csv
import pathlib
import sys

import common


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    columns = [[float(value) for value in column] for column in zip(*rows)]
    pyplot = common.use_style()
    figure, axis = pyplot.subplots(figsize=(5.5, 2.8))
    axis.stackplot(columns[0], [[value / 2**20 for value in column]
                                for column in columns[1:]],
                   labels=header[1:], colors=common.COLOURS, linewidth=0)
    axis.set_xlabel("time, s")
    axis.set_ylabel("resident, MiB")
    axis.margins(x=0)
    figure.legend(loc="outside upper center", ncols=4, fontsize=7)
    path = pathlib.Path(sys.argv[2])
    common.save(figure, path.parent, path.name)


if __name__ == "__main__":
    main()
