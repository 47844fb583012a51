"""What a round costs beyond computing, with three provisioned sites on this machine.

    python -m benchmarks.federation.overhead [--out benchmarks/results/federation_overhead.md]

A round's overhead is the time from the end of one round to the end of the next, as the coordinator's history has it,
less the longest that a site computed in it, as the sites' audit logs have it: signing, sending, checking, writing down.
It has two parts: the exchange, from the first request to the last answer that was checked, and what the coordinator
does by itself, which is to add up, to decide and to write down.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil

from benchmarks.federation.beside import Beside
from silograph.federation.coordinator.history import History
from silograph.federation.site.audit import entries
from testing.real_federation import RealFederation, study_text

RESULTS = Path(__file__).resolve().parents[1] / "results"
SIZES = {100: 200, 1001: 60}  # nodes → samples; 4950 and 500 500 pairs
METHODS = {"exact": "", "algorithm1": "rounds = 30\n", "fedavg": "rounds = 30\n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One study's rounds."""

    pairs: int
    method: str
    rounds: int
    overhead: float  # seconds, median over rounds
    worst: float
    exchange: float  # seconds of it, median
    coordinator: float
    computing: float  # seconds, median
    megabytes: float  # per round, all sites, both ways
    job_memory: float  # MB, the largest of a site's job process
    server_memory: float


def write_table(n_nodes: int, n_samples: int):
    """Smooth signals: neighbours on a line are alike."""

    def write(path: Path, seed: int) -> None:
        steps = np.random.default_rng(seed).normal(size=(n_samples, n_nodes))
        signals = np.apply_along_axis(np.convolve, 1, steps, np.ones(5) / 5, mode="same")
        names = ",".join(f"n{k}" for k in range(n_nodes))
        np.savetxt(path, signals, delimiter=",", header=names, comments="", fmt="%.9g")

    return write


class Memory(Beside):
    """The largest resident memory of the federation's job processes."""

    def __init__(self, federation: RealFederation) -> None:
        super().__init__(federation)
        self.site, self.server = 0.0, 0.0

    def look(self) -> None:
        """Look at all jobs."""
        for process in self.federation.processes():
            try:
                command, size = " ".join(process.cmdline()), process.memory_info().rss / 1e6
            except psutil.Error:
                continue
            if "site_job" in command:
                self.site = max(self.site, size)
            elif "server_job" in command:
                self.server = max(self.server, size)


def measure(federation: RealFederation, method: str, pairs: int) -> Measured:
    """Run one study, and read the history and the logs."""
    out = federation.folder / f"run-{method}"
    text = study_text(f'method = "{method}"\ndegree = 5\n{METHODS[method]}', share_graphs="false")
    with Memory(federation) as memory:
        record = federation.run(text, str(out))
    with History.open_read(federation.fed / "runs" / record["federation"]["run"] / "history.sqlite") as history:
        rounds = [one for one in history.rounds() if one.stage == "learn"]
    by_site = [computed(federation.home(site), record["federation"]["run"]) for site in federation.sites]
    overheads, exchanges, computing = [], [], []
    for before, one in pairwise(rounds):
        busy = max(site[one.round] for site in by_site)
        overheads.append(one.finished_at - before.finished_at - busy)
        exchanges.append((one.seconds or 0.0) - busy)
        computing.append(busy)
    return Measured(
        pairs=pairs,
        method=method,
        rounds=len(rounds),
        overhead=float(np.median(overheads)),
        worst=max(overheads),
        exchange=float(np.median(exchanges)),
        coordinator=float(np.median(np.subtract(overheads, exchanges))),
        computing=float(np.median(computing)),
        megabytes=float(np.median([(one.bytes_down + one.bytes_up) / 1e6 for one in rounds])),
        job_memory=memory.site,
        server_memory=memory.server,
    )


def computed(home: Path, run: str) -> dict[int, float]:
    """Seconds of computing by round of the learn stage, from a site's audit log."""
    seconds, stage = {}, ""
    for entry in entries(home / "audit.jsonl"):
        if not str(entry.get("run", "")).startswith(run):
            continue
        stage = str(entry.get("stage", stage))
        if entry["what"] == "answered" and "seconds" in entry and stage == "learn":
            seconds[int(entry["round"])] = float(entry["seconds"])
    return seconds


def table(rows: list[Measured]) -> str:
    """Markdown."""
    names = "pairs", "method", "rounds", "overhead per round, median", "worst", "of it exchange", "coordinator"
    names = (*names, "computing", "MB per round", "memory of a site's job", "of the server's job")
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    lines += [
        f"| {row.pairs} | {row.method} | {row.rounds} | **{1e3 * row.overhead:.0f} ms** | {1e3 * row.worst:.0f} ms | "
        f"{1e3 * row.exchange:.0f} ms | {1e3 * row.coordinator:.0f} ms | "
        f"{1e3 * row.computing:.0f} ms | {row.megabytes:.2f} | {row.job_memory:.0f} MB | {row.server_memory:.0f} MB |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure all, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / "federation_overhead.md")
    arguments = parser.parse_args()
    rows: list[Measured] = []
    for n_nodes, n_samples in SIZES.items():
        with tempfile.TemporaryDirectory() as place:
            make = write_table(n_nodes, n_samples)
            nodes = tuple(f"n{k}" for k in range(n_nodes))
            join = ("--approve-all", "--min-samples", str(n_samples))
            with RealFederation(Path(place) / "federation", join=join, make_table=make, nodes=nodes) as federation:
                for method in METHODS:
                    rows.append(measure(federation, method, n_nodes * (n_nodes - 1) // 2))
                    print(rows[-1], flush=True)
    arguments.out.parent.mkdir(exist_ok=True)
    when = time.strftime("%Y-%m-%d")
    place = f"Three provisioned sites and the server on one machine of {psutil.cpu_count()} cores, {when}."
    text = f"# What a round costs beyond computing\n\n{place}\n\n"
    arguments.out.write_text(text + table(rows) + "\n", encoding="utf-8")
    arguments.out.with_suffix(".json").write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
