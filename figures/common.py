"""What all figures share: one style, how they are saved, what is noted down."""

import concurrent.futures
import csv
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

# Okabe and Ito's colours, which people with any colour vision tell apart; the
# markers differ as well, for print without colours.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9",
           "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
ROOT = pathlib.Path(__file__).resolve().parent.parent


def use_style():
    """Sets fonts and sizes that are readable at a column's width in print."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    pyplot.rcParams.update({
        "axes.grid": True,
        "axes.prop_cycle": pyplot.cycler(color=COLOURS, marker=MARKERS),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.constrained_layout.use": True,
        "figure.dpi": 150,
        "font.size": 9,
        "grid.alpha": 0.3,
        "legend.frameon": False,
        "lines.markersize": 4,
        "pdf.fonttype": 42,
        "svg.hashsalt": "mets",
    })
    return pyplot


def simulate(build, traces, words):
    """What `mets-sim --json` says of jobs that do what `traces` (names of files
    in figures/traces, with options as in "mets-cnn,start=1") say: its report
    and None, or None and its error."""
    command = [str(pathlib.Path(build) / "bin/mets-sim"), "--json", *words]
    for trace in traces:
        name, comma, options = trace.partition(",")
        file = ROOT / "figures/traces" / (name + ".csv.xz")
        command += ["--trace", f"{file}{comma}{options}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip().split("\n")[0]
    return json.loads(done.stdout), None


def run_simulation(build, traces, words):
    """As `simulate`, but ends the program on an error."""
    report, error = simulate(build, traces, words)
    if report is None:
        sys.exit(error)
    return report


def at_once(function, items):
    """What `function` gives for each item, in order: for simulations and the
    like, whose results do not depend on what runs beside them."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(function, items)


def tell(name, value):
    """Prints a number of the figure. Where a document has it, it stands before
    a comment with the figure and the name, as in 1.02<!--2.1 bert at 60-->, and
    tests/figures/figures_test.py compares the two."""
    print(f"{name} = {value!r}")


def write_rows(path, fields, rows):
    """Writes dictionaries as a CSV, and prints them, each once it is there."""
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            file.flush()
            print(*row.values(), flush=True)


def save(figure, folder, name):
    """Writes name.pdf and name.png, the same bytes for the same data."""
    folder = pathlib.Path(folder)
    figure.savefig(folder / (name + ".pdf"), metadata={"CreationDate": None})
    figure.savefig(folder / (name + ".png"), metadata={"Software": None})
    print(f"wrote {folder / name}.pdf and .png")


def _output(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def describe_machine():
    """The processor, its caches and the kernel, as a dictionary."""
    text = _output("lscpu")

    def field(name):
        match = re.search(rf"^\s*{name}:\s*(.*)$", text, re.MULTILINE)
        return match.group(1) if match else "unknown"

    return {
        "processor": field("Model name"),
        "processors": os.cpu_count(),
        "l2": field("L2 cache"),
        "l3": field("L3 cache"),
        "kernel": platform.release(),
    }


# What measurements run, or are made by. Not the data, which each one changes.
MEASURED = ["CMakeLists.txt", "cmake", "client", "common", "daemon", "proto",
            "tf_allocator", "tests/benchmarks", "tests/e2e", ":(glob)figures/**/*.py"]


def write_meta(path, command, **more):
    """Notes how data came to be: command, commit, machine, versions, date."""
    commit = _output("git", "rev-parse", "HEAD")
    if _output("git", "status", "--porcelain", "--untracked-files=no", "--",
               *MEASURED):
        commit += " (changed)"
    meta = {
        "command": command,
        "commit": commit,
        "machine": describe_machine(),
        "compiler": _output("c++", "--version").split("\n")[0],
        "load_average": list(os.getloadavg()),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(
            timespec="seconds"),
    }
    meta.update(more)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(meta, file, indent=2)
        file.write("\n")
