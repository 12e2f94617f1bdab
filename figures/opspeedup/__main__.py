"""mets-opspeedup: operators of two recorded runs side by side.

Reads the profiles that TensorFlow's TensorBoard callback writes. Each --model
compares two runs: a processor and a GPU, METS on and off, any two."""

import argparse
import os
import sys

try:
    from rich.console import Console
    from rich.progress import (BarColumn, DownloadColumn, Progress, TextColumn,
                               TimeRemainingColumn)

    from opspeedup import compare, profiles, report
    from opspeedup.errors import ProfileError
except ImportError as error:
    sys.exit(f"mets-opspeedup: {error}; set METS_PYTHON to a Python with numpy, "
             "protobuf and rich, which come with TensorFlow")


def _bar():
    return Progress(TextColumn("{task.description}"), BarColumn(),
                    DownloadColumn(), TimeRemainingColumn(),
                    console=Console(stderr=True))


def _arguments():
    parser = argparse.ArgumentParser(prog="mets-opspeedup", description=__doc__)
    parser.add_argument(
        "--model", nargs=3, action="append", required=True,
        metavar=("NAME", "BASE", "OTHER"),
        help="a model's name and its two runs: a folder that the callback "
        "wrote to, one within, or a file; may be repeated")
    parser.add_argument("--labels", default="base,other", metavar="BASE,OTHER",
                        help="what the runs are, e.g. CPU,GPU")
    parser.add_argument("--by", choices=["type", "name"], default="type",
                        help="operators by type (default), or each by its name")
    parser.add_argument("--top", type=int, default=20, metavar="N",
                        help="operators per model in Markdown and plot (20)")
    parser.add_argument("--csv", metavar="FILE",
                        help="all operators, all digits")
    parser.add_argument("--markdown", metavar="FILE",
                        help="tables (default: on standard output)")
    parser.add_argument("--plot", metavar="FILE", help=".png, .pdf or .svg")
    arguments = parser.parse_args()
    arguments.labels = arguments.labels.split(",")
    names = [name for name, _, _ in arguments.model]
    if len(arguments.labels) != 2:
        parser.error("--labels wants two words, as in CPU,GPU")
    if len(set(names)) != len(names):
        parser.error(f"two models have one name: {', '.join(sorted(names))}")
    if arguments.top < 1:
        parser.error(f"--top wants 1 or more, not {arguments.top}")
    return arguments


def _compare(arguments):
    """Rows and totals of all models."""
    rows, totals = [], []
    sizes = {path: sum(map(os.path.getsize, profiles.find(path)))
             for _, *paths in arguments.model for path in paths}
    with _bar() as bar:
        def read(name, label, path):
            task = bar.add_task(f"{name}, {label}", total=sizes[path])
            return profiles.read(path, arguments.by == "name",
                                 lambda count: bar.advance(task, count),
                                 bar.console.print)

        for name, *paths in arguments.model:
            base, other = (read(name, label, path)
                           for label, path in zip(arguments.labels, paths))
            mine = compare.rows(name, base, other)
            rows += mine
            totals.append(compare.total(name, mine))
    return rows, totals


def main():
    arguments = _arguments()
    try:
        rows, totals = _compare(arguments)
        if arguments.csv:
            report.write_csv(arguments.csv, rows)
        text = report.markdown(rows, totals, arguments.labels, arguments.top)
        if arguments.markdown:
            with open(arguments.markdown, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            print(text, end="")
        if arguments.plot:
            report.plot(arguments.plot, rows, totals, arguments.labels,
                        arguments.top)
    except (ProfileError, OSError) as error:
        print(f"mets-opspeedup: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
