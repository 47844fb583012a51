"""How much of a core a federation takes that has nothing to do, with three provisioned sites on this machine.

    python -m benchmarks.federation.idle [--seconds 60] [--out benchmarks/results/federation_idle.md]

Measured is the processor time, user and system, of every process: while no run is there, while a run waits for a site's
approval, and while it waits for a site that is slow (its process of the job is stopped).
"""

from __future__ import annotations

import argparse
import json
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from silograph.federation.coordinator.history import History
from testing.real_federation import SERVER, SITES, Kind, RealFederation, study_text
from testing.waiting import eventually

RESULTS = Path(__file__).resolve().parents[1] / "results"
LIMIT = 0.02  # of a core
SETTLING = 10.0  # seconds after the last process came up
KINDS: tuple[Kind, ...] = ("server parent", "server job", "site parent", "site job")
WAITING = 'timeout = 100000\non_missing = "wait"\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """What one process took while it waited."""

    waits_for: str
    process: str
    share: float  # of a core
    seconds: float


def processes_of(federation: RealFederation, site: str) -> dict[str, psutil.Process]:
    """The processes of the server and of one site, by what they are; their hosts, too."""
    kinds = (*KINDS, "conductor")
    found = {kind: federation.find(kind, site if kind.startswith("site") else None) for kind in kinds}
    hosts = {f"{kind} host": federation.hosts[name].pid for kind, name in (("server", SERVER), ("site", site))}
    return {name: psutil.Process(pid) for name, pid in hosts.items()} | {
        kind: process for kind, process in found.items() if process is not None
    }


def measure(waits_for: str, processes: Mapping[str, psutil.Process], seconds: float) -> list[Idle]:
    """The share of a core of each process."""
    time.sleep(SETTLING)
    before = {name: _used(process) for name, process in processes.items()}
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return [
        Idle(waits_for=waits_for, process=name, share=(_used(process) - before[name]) / took, seconds=took)
        for name, process in processes.items()
    ]


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def measure_all(folder: Path, seconds: float) -> list[Idle]:
    """Nothing to do, then a run without an approval, then one with a slow site."""
    first, *_, last = SITES
    text = study_text('method = "exact"\ndegree = 3\n', WAITING)
    approved = {site: ("--approve-all",) for site in SITES if site != last}
    with RealFederation(folder, join=("--min-samples", "5"), also=approved) as federation:
        rows = measure("a run", processes_of(federation, first), seconds)
        run = federation.start_run(text, folder / "run")
        eventually(lambda: _states(federation).get(last) == "unapproved", 120.0)
        command = {"federation run": psutil.Process(run.pid)}
        rows += measure("an approval", processes_of(federation, first) | command, seconds)
        federation.kill("site job", last, number=signal.SIGSTOP)
        rows += measure("a slow site", processes_of(federation, first) | command, seconds)
        federation.kill("site job", last, number=signal.SIGCONT)
    return rows


def _states(federation: RealFederation) -> dict[str, str]:
    """How the sites of the newest run are."""
    runs = sorted((federation.fed / "runs").glob("*/history.sqlite"))
    if not runs:
        return {}
    with History.open_read(runs[-1]) as history:
        return {site.name: site.state for site in history.sites()}


def table(rows: list[Idle]) -> str:
    """Markdown."""
    lines = ["| waits for | process | of a core |", "|---|---|---|"]
    for row in rows:
        mark = "**" if row.share >= LIMIT else ""
        lines.append(f"| {row.waits_for} | {row.process} | {mark}{100 * row.share:.2f} %{mark} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / "federation_idle.md")
    parser.add_argument("--seconds", type=float, default=60.0, help="to measure for, of each kind of waiting")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        rows = measure_all(Path(place) / "federation", arguments.seconds)
    place = f"Three provisioned sites and the server on one machine of {psutil.cpu_count()} cores"
    about = f"{place}, {time.strftime('%Y-%m-%d')}; user and system time over {arguments.seconds:g} s."
    text = f"# What a federation takes that has nothing to do\n\n{about}\n\n{table(rows)}\n"
    print(text)
    arguments.out.write_text(text, encoding="utf-8")
    arguments.out.with_suffix(".json").write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
