"""Plots data/traffic.csv: control traffic and metsd's processor time by the
number of sessions."""

import csv
import pathlib

import common

HERE = pathlib.Path(__file__).resolve().parent


def main():
    pyplot = common.use_style()
    with open(HERE / "data/traffic.csv", encoding="utf-8") as file:
        rows = [{key: float(value) for key, value in row.items()}
                for row in csv.DictReader(file)]
    sessions = [int(row["sessions"]) for row in rows]
    figure, (traffic, time) = pyplot.subplots(1, 2, figsize=(7.2, 2.6))
    for i, (way, label) in enumerate((("received", "from a session"),
                                      ("sent", "to a session"))):
        rate = [row[f"{way}_bytes"] / row["seconds"] / row["sessions"]
                for row in rows]
        traffic.plot(sessions, rate, label=label, color=common.COLOURS[i],
                     marker=common.MARKERS[i])
        for count, value in zip(sessions, rate):
            common.tell(f"{way} {count}", value)
    busy = [100 * row["processor_seconds"] / row["seconds"] for row in rows]
    time.plot(sessions, busy)
    for count, value in zip(sessions, busy):
        common.tell(f"processor {count}", value)
    for axis in (traffic, time):
        axis.set_xscale("log", base=2)
        axis.set_xticks(sessions, sessions)
        axis.set_xlabel("sessions whose steps repeat")
        axis.set_ylim(bottom=0)
    traffic.set_ylabel("bytes a second and session")
    traffic.legend()
    time.set_ylabel("metsd's time (% of a core)")
    common.save(figure, HERE, "traffic")


if __name__ == "__main__":
    main()
