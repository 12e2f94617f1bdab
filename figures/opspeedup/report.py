"""The comparison as CSV, Markdown and plot."""

import csv

from opspeedup.errors import ProfileError

_TIMES = ("count", "mean_us", "spread_us", "min_us", "max_us", "total_us",
          "share", "where")
# Okabe and Ito's: told apart with any colour vision.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9",
            "#000000"]


def _times(times, share, where):
    if not times.count:
        return [0] + [""] * (len(_TIMES) - 1)
    return [times.count, times.mean, times.spread, times.least, times.most,
            times.total, share, where]


def write_csv(path, rows):
    """A line per model and operator; times in microseconds, shares 0 to 1; all
    digits, so that others can compute on."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "operator",
                         *(f"base_{name}" for name in _TIMES),
                         *(f"other_{name}" for name in _TIMES), "ratio"])
        for row in rows:
            writer.writerow([
                row.model, row.operator,
                *_times(row.base, row.base_share, row.base_where),
                *_times(row.other, row.other_share, row.other_where),
                "" if row.ratio is None else row.ratio])


def _number(value):
    if value is None:
        return ""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _table(heads, lines):
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for line in lines:
        yield "| " + " | ".join(map(str, line)) + " |"


def _cells(times, share, where):
    if not times.count:
        return ["", "", ""]
    return [times.count, f"{_number(times.mean)} ± {_number(times.spread)}"
            + (" (device)" if where == "device" else ""), f"{100 * share:.1f} %"]


def markdown(rows, totals, labels, top):
    """Totals of all models, then each model's `top` operators."""
    base, other = labels
    lines = _table(
        ["model", f"{base}: ops", "ms", f"{other}: ops", "ms", "matched",
         f"only {base}", f"only {other}", f"{base} / {other}"],
        [[t.model, t.base_count, _number(t.base_us / 1e3), t.other_count,
          _number(t.other_us / 1e3), t.matched, t.base_only, t.other_only,
          _number(t.ratio)] for t in totals])
    text = ["\n".join(lines)]
    heads = ["operator", f"{base}: count", "mean ± spread (µs)", "share",
             f"{other}: count", "mean ± spread (µs)", "share",
             f"{base} / {other}"]
    for total in totals:
        mine = [r for r in rows if r.model == total.model]
        cells = [[f"`{r.operator}`",
                  *_cells(r.base, r.base_share, r.base_where),
                  *_cells(r.other, r.other_share, r.other_where),
                  _number(r.ratio)] for r in mine[:top]]
        table = "\n".join(_table(heads, cells))
        text.append(f"\n### {total.model}\n\n{table}")
        if len(mine) > top:
            text.append(f"\n{len(mine) - top} more operators, which took less.")
    return "\n".join(text) + "\n"


def _pyplot():
    try:
        import matplotlib
    except ImportError:
        raise ProfileError("a plot needs matplotlib: "
                           "python3 -m pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot


def plot(path, rows, totals, labels, top):
    """Bars of the ratios of what took longest, a panel per model."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(
        1, len(totals), squeeze=False, layout="constrained",
        figsize=(3.4 * len(totals), 0.9 + 0.22 * top))
    for i, (axis, total) in enumerate(zip(axes[0], totals)):
        mine = [r for r in rows if r.model == total.model and r.ratio][:top]
        axis.barh([r.operator for r in mine], [r.ratio for r in mine],
                  color=_COLOURS[i % len(_COLOURS)])
        axis.axvline(1, color="black", linewidth=0.8, linestyle="--")
        axis.set_xscale("log")
        axis.invert_yaxis()
        axis.tick_params(labelsize=7)
        axis.set_title(f"{total.model}: {_number(total.ratio)} in all",
                       fontsize=9)
        axis.set_xlabel(f"time: {labels[0]} / {labels[1]}", fontsize=8)
    try:
        figure.savefig(path, dpi=150)
    except ValueError as error:
        raise ProfileError(f"cannot plot to {path}: {error}") from None
