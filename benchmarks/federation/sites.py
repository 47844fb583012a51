"""How a federation grows with its sites: as many real ones as this machine holds, each with processes of its own.

    python -m benchmarks.federation.sites [--sites 3 8 16 32] [--nodes 100] [--out FILE]

All sites share the machine's cores and its memory here, which real ones do not. So memory is told for each process, in
its proportional share of pages (PSS), and the time of a round beside the processor time that the server's job took for
it: that is the part which does not go away when sites have machines of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil

from benchmarks.federation.beside import Beside
from benchmarks.federation.overhead import RESULTS, write_table
from benchmarks.machine import facts
from silograph.federation.coordinator.history import History
from testing.real_federation import SERVER, RealFederation, study_text

N_SAMPLES = 150
EXACT = 'method = "exact"\ndegree = 5\ncoupling = 0.5\n'
ONESHOT = 'method = "oneshot"\ndegree = 5\n'
JOBS = {"site": "site_job", "server": "server_job"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """One number of sites."""

    sites: int
    site_idle: float  # MB of one site's processes that has nothing to do, median
    server_idle: float  # MB of the server's and its conductor's
    site_job: float  # MB, the largest while a run goes on
    server_job: float
    starting: float  # seconds, of an exact run, until its processes are up
    rounds: int
    per_round: float  # seconds, median
    server_per_round: float  # seconds of processor time of the server's job
    megabytes: float  # per round, all sites, both ways
    masked: float  # seconds from command to result of a masked sum
    masked_megabytes: float  # of all of it


class Watching(Beside):
    """What a run's processes take: the largest PSS, and the server's processor time."""

    EVERY = 0.2

    def __init__(self, federation: RealFederation) -> None:
        super().__init__(federation)
        self.pss = dict.fromkeys(JOBS, 0.0)
        self.busy: list[tuple[float, float]] = []  # when, and how much so far

    def look(self) -> None:
        """Look at some of the sites, and at the server."""
        found = [(process, kind) for process in self.federation.processes() if (kind := _job(process))]
        sites = [one for one in found if one[1] == "site"][:3]  # to look at all of many would be a load of its own
        for process, kind in [*sites, *(one for one in found if one[1] == "server")]:
            self.pss[kind] = max(self.pss[kind], _pss(process))
            if kind == "server":
                self.busy.append((time.time(), _used(process)))

    def busy_between(self, start: float, end: float) -> float:
        """Processor time of the server's job."""
        when, used = np.array(self.busy).T
        return float(np.interp(end, when, used) - np.interp(start, when, used))


def _job(process: psutil.Process) -> str:
    try:
        command = " ".join(process.cmdline())
    except psutil.Error:
        return ""
    return next((kind for kind, word in JOBS.items() if word in command), "")


def _pss(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / 1e6
    except psutil.Error:
        return 0.0


def _used(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def _idle(federation: RealFederation, name: str) -> float:
    host = psutil.Process(federation.hosts[name].pid)
    return sum(map(_pss, [host, *host.children(recursive=True)]))


def measure(n_sites: int, n_nodes: int, folder: Path) -> Grown:
    """Found so many sites, and run a study of each kind."""
    names = tuple(f"site{number:03d}" for number in range(n_sites))
    nodes = tuple(f"n{k}" for k in range(n_nodes))
    join = ("--approve-all", "--min-samples", str(N_SAMPLES))
    table = write_table(n_nodes, N_SAMPLES)
    with RealFederation(folder, sites=names, join=join, make_table=table, nodes=nodes) as federation:
        idle = [_idle(federation, name) for name in names]
        server = _idle(federation, SERVER)
        with Watching(federation) as watched:
            record = federation.run(study_text(EXACT, share_graphs="false"), folder / "exact")
        run = record["federation"]["run"]
        with History.open_read(federation.fed / "runs" / run / "history.sqlite") as history:
            rounds = history.rounds()
        began = time.monotonic()
        masked = federation.run(federation.masked_text(ONESHOT), folder / "masked")
        took = time.monotonic() - began
    return Grown(
        sites=n_sites,
        site_idle=float(np.median(idle)),
        server_idle=server,
        site_job=watched.pss["site"],
        server_job=watched.pss["server"],
        starting=record["federation"]["times"]["starting"],
        rounds=len(rounds),
        per_round=float(np.median([one.finished_at - before.finished_at for before, one in pairwise(rounds)])),
        server_per_round=watched.busy_between(rounds[0].finished_at, rounds[-1].finished_at) / (len(rounds) - 1),
        megabytes=float(np.median([(one.bytes_down + one.bytes_up) / 1e6 for one in rounds])),
        masked=took,
        masked_megabytes=(masked["federation"]["bytes_down"] + masked["federation"]["bytes_up"]) / 1e6,
    )


def table(rows: list[Grown]) -> str:
    """Markdown."""
    names = "sites", "memory of an idle site", "of the idle server", "of a site's job", "of the server's job"
    names = (*names, "processes start", "rounds", "time per round", "the server's part", "MB per round")
    names = (*names, "masked: command to result", "masked: MB in all")
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    lines += [
        f"| {row.sites} | {row.site_idle:.0f} MB | {row.server_idle:.0f} MB | {row.site_job:.0f} MB | "
        f"{row.server_job:.0f} MB | {row.starting:.0f} s | {row.rounds} | {1e3 * row.per_round:.0f} ms | "
        f"{1e3 * row.server_per_round:.0f} ms | {row.megabytes:.2f} | {row.masked:.0f} s | {row.masked_megabytes:.1f} |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, nargs="+", default=[3, 8, 16, 32])
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS / "federation_sites.md")
    options = parser.parse_args()
    rows: list[Grown] = []
    for n_sites in options.sites:
        with tempfile.TemporaryDirectory() as place:
            rows.append(measure(n_sites, options.nodes, Path(place) / "federation"))
        print(rows[-1], flush=True)
        machine = f"{facts()['cpu']}, {os.cpu_count()} cores"
        about = f"All on one machine ({machine}), {options.nodes} nodes, {N_SAMPLES} samples a site."
        text = f"# How a federation grows with its sites\n\n{about}\n\n{table(rows)}\n"
        options.out.write_text(text, encoding="utf-8")
        options.out.with_suffix(".json").write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    print(text)


if __name__ == "__main__":
    main()
