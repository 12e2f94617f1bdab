"""Plays pairs of recordings live and simulates them; writes data/played.csv.

    play.py BUILD

What measure.py has recorded is played under a metsd by build/bin/mets_player:
the same allocations, accesses and frees, ops that take their recorded time, so
that live and simulated jobs are the same ones. The second job begins a little
later, each time a little more: what one moment decides changes what moves, so
that means are to be compared. Between two that are played, more are simulated.

mets-sim has one speed of the bus, each way. It is told the one at which a byte
takes as long out and in as in a hand-over, which `metsctl bench` measures each
way before. Nothing is fitted.
"""

import json
import pathlib
import subprocess
import sys
import time

import common
import live
import measure

HERE = pathlib.Path(__file__).resolve().parent
TIME_SCALE = 0.5  # Ops take half as long as recorded.
STARTS = [0.003 + 0.01 * i for i in range(40)]  # Seconds.
PLAYED = STARTS[::7]
FIELDS = ["pair", "plans", "start", "pool_bytes", "bus_gbps", "live_bytes",
          "simulated_bytes", "live_seconds", "simulated_seconds"]


def measure_bus(build):
    """GB/s of hand-overs, each way."""
    with live.Metsd(build, "512MiB") as metsd:
        report = json.loads(metsd.control("bench", "--move", "128MiB",
                                          "--json"))
    out, back = (report["figures"][f"hand_over_{way}_gbps"]
                 for way in ("out", "in"))
    return round(2 / (1 / out + 1 / back), 2)


def play(build, pair, pool, plans, start):
    """Bytes that the pair moves, and the seconds that it takes."""
    with live.Metsd(build, pool, "--plans", plans) as metsd:
        clock = pathlib.Path(metsd.run_dir, "clock")
        players = []
        for i, model in enumerate(pair):
            players.append(subprocess.Popen(
                metsd.metsctl("run", "--job", f"{model}-{i}", "--",
                              pathlib.Path(build) / "bin/mets_player",
                              "--trace", HERE / f"data/{model}.csv.xz",
                              "--time-scale", TIME_SCALE,
                              "--device-clock", clock),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            players[-1].stdout.readline()
        begin = time.monotonic()
        for player in players:
            player.stdin.write("\n")
            player.stdin.flush()
            if player is players[0]:
                time.sleep(start)
        said = [json.loads(player.stdout.readline()) for player in players]
        seconds = time.monotonic() - begin
        if any([player.wait() for player in players]):
            sys.exit(f"a player of {pair} failed")
    return sum(job["evicted_bytes"] + job["restored_bytes"]
               for job in said), round(seconds, 3)


def simulate(build, pair, memory, plans, start, bus):
    """What mets-sim says of the pair."""
    words = ["--device-memory", str(memory), "--bus-gbps", str(bus),
             "--moves", "1", "--time-scale", str(TIME_SCALE)]
    if plans == "off":
        words.append("--no-plans")
    starts = [0, start]
    traces = [f"../figure.1.4/data/{model},start={starts[i]}"
              for i, model in enumerate(pair)]
    return common.run_simulation(build, traces, words)


def rows(build, bus):
    for pair in measure.PAIRS:
        for plans in ("off", "on"):
            pool = simulate(build, pair, f"{measure.PERCENT}%", plans, 0,
                            bus)["device_bytes"]
            pool -= pool % measure.CHUNK
            played = {start: play(build, pair, pool, plans, start)
                      for start in PLAYED}
            simulated = common.at_once(
                lambda start: simulate(build, pair, pool, plans, start, bus),
                STARTS)
            for start, said in zip(STARTS, simulated):
                moved, seconds = played.get(start, ("", ""))
                yield dict(zip(FIELDS, [
                    "+".join(pair), plans, round(start, 3), pool, bus, moved,
                    sum(job["evicted_bytes"] + job["restored_bytes"]
                        for job in said["jobs"]),
                    seconds, round(said["total_seconds"], 3)]))


def main():
    build = sys.argv[1]
    bus = measure_bus(build)
    common.write_rows(HERE / "data/played.csv", FIELDS, rows(build, bus))
    common.write_meta(HERE / "data/played-meta.json", "reproduce.sh --play")


if __name__ == "__main__":
    main()
