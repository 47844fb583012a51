"""An hour of studies, one after the other, half of them disturbed: what grows, and whether all results are the same.

    python -m benchmarks.federation.soak [--minutes 60] [--out benchmarks/results/federation_soak.md]

Faults are drawn from those that leave the server and the sites' own processes alive, so that these are as old as the
measurement in the end. After every study, when no job is left, each of them is asked for its memory, open files and
threads, and the folders for their size.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.federation.disturbed import FAULTS, MissedError, Stage
from benchmarks.federation.fault_table import current_commit
from benchmarks.federation.faults import MODES, different, digests, make_healthy, undisturbed
from benchmarks.figures import COLOURS, drawing
from benchmarks.machine import facts
from testing.real_federation import SERVER, RealFederation

RESULTS = Path(__file__).resolve().parents[1] / "results"
GENTLE = (
    "site job killed",
    "server job killed",
    "site suspended for 15 to 40 s",
    "`federation run` killed, resumed by hand",
)
OPEN = MODES[0]
SETTLED = 600.0  # seconds after which a process has loaded what it ever will; growth is fitted from here on
MB = 2.0**20


def soak(federation: RealFederation, seconds: float, write: Any) -> list[dict[str, Any]]:
    """Run studies until the time is over; a row for each."""
    rows, numbers, began = [], itertools.count(), time.monotonic()
    usual, expected = undisturbed(federation, OPEN)
    while time.monotonic() - began < seconds:
        number = next(numbers)
        fault = random.choice(GENTLE) if number % 2 else None
        started = time.monotonic()
        wrong = _study(federation, 10_000 + number, fault, usual, expected)
        if wrong is None:  # it was over before it could be disturbed
            continue
        make_healthy(federation)
        row = {"at": time.monotonic() - began, "fault": fault, "took": time.monotonic() - started, "wrong": wrong}
        rows.append({**row, "processes": _processes(federation), "folders": _folders(federation)})
        print(json.dumps(rows[-1]), flush=True)
        write(rows)
    return rows


def _study(
    federation: RealFederation, number: int, fault: str | None, usual: float, expected: dict[str, str]
) -> str | None:
    """What is wrong with the result of one more study; None if there was nothing to disturb."""
    stage = Stage(
        federation=federation,
        out=federation.folder / f"soak-{number}",
        study=OPEN.study(federation, number),
        site=random.choice(federation.sites),
        moment=random.uniform(0, usual),
    )
    try:
        if fault is None:
            stage.start()
        else:
            FAULTS[fault](stage)
    except MissedError:
        stage.end()
        return None
    code = stage.end()
    return different(digests(stage.out), expected) if code in (0, 3) else f"code {code}: {' / '.join(stage.said[-5:])}"


def _processes(federation: RealFederation) -> dict[str, dict[str, float]]:
    """Memory, files and threads of what lives on, by what it is."""
    found = {}
    for name, host in federation.hosts.items():
        parent = federation.find("server parent" if name == SERVER else "site parent", name)
        for kind, process in (("host", psutil.Process(host.pid)), ("parent", parent)):
            if process is not None:
                found[f"{name} {kind}"] = {
                    "age": time.time() - process.create_time(),
                    "memory": process.memory_info().rss / MB,
                    "files": process.num_fds(),
                    "threads": process.num_threads(),
                }
    return found | {"all": {"processes": len(federation.processes())}}


def _folders(federation: RealFederation) -> dict[str, float]:
    """MB on the disk, the coordinator's and a site's."""
    places = {"coordinator": federation.fed, "site": federation.home(federation.sites[0])}
    return {name: _size(place) / MB for name, place in places.items()}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def page(report: dict[str, Any]) -> str:
    """The page of what was measured."""
    rows = report["rows"]
    faults = sum(row["fault"] is not None for row in rows)
    wrong = [f"{row['fault'] or 'undisturbed'}: {row['wrong']}" for row in rows if row["wrong"]]
    lines = [
        "# An hour of studies, one after the other",
        "",
        f"{len(rows)} studies in {rows[-1]['at'] / 60:.0f} minutes, {faults} of them disturbed: "
        f"{len(rows) - len(wrong)} ended with the same bits. Commit {report['commit']}, {report['machine']['cpu']}, "
        f"{report['machine']['cpu_count']} cores.",
        "",
        f"Growth is the slope over the studies after the first {SETTLED / 60:.0f} minutes.",
        "",
        "| process | age | memory, first | last | growth in an hour | files, first | last | threads, first | last |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_line(name, rows) for name in sorted(set(rows[0]["processes"]) - {"all"})),
        "",
        f"Processes of the federation between studies: {rows[0]['processes']['all']['processes']} at first, "
        f"{rows[-1]['processes']['all']['processes']} in the end. On the disk, per study: "
        + ", ".join(f"{_per_study(rows, name):.2f} MB at the {name}" for name in rows[0]["folders"])
        + ".",
        *([""] + [f"- {each}" for each in wrong] if wrong else []),
    ]
    return "\n".join(lines) + "\n"


def _line(name: str, rows: list[dict[str, Any]]) -> str:
    seen = [(row["at"], row["processes"][name]) for row in rows if name in row["processes"]]
    (_, first), (_, last) = seen[0], seen[-1]
    late = [(at, one["memory"]) for at, one in seen if at > SETTLED] or [(at, one["memory"]) for at, one in seen]
    slope = float(np.polyfit(*zip(*late, strict=True), 1)[0]) * 3600 if len(late) > 2 else float("nan")
    age = f"{last['age'] / 60:.0f} min"
    memory = [f"{first['memory']:.0f} MB", f"{last['memory']:.0f} MB", f"{slope:+.1f} MB"]
    counts = [str(one[kind]) for kind in ("files", "threads") for one in (first, last)]
    return f"| {' | '.join([name, age, *memory, *counts])} |"


def _per_study(rows: list[dict[str, Any]], name: str) -> float:
    return float(rows[-1]["folders"][name] - rows[0]["folders"][name]) / max(len(rows) - 1, 1)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Memory and open files over time."""
    with drawing(path, 2, height=3.2) as panels:
        for panel, kind, label in zip(panels, ("memory", "files"), ("memory in MB", "open files"), strict=True):
            for name, colour in zip(sorted(set(rows[0]["processes"]) - {"all"}), COLOURS, strict=False):
                seen = [(row["at"] / 60, row["processes"][name][kind]) for row in rows if name in row["processes"]]
                panel.plot(*zip(*seen, strict=True), color=colour, label=name)
            panel.set(xlabel="minutes", ylabel=label, ylim=(0, None))
            panel.grid(alpha=0.3)
        panels[1].legend(fontsize=7)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=RESULTS / "federation_soak.md", help="page to write")
    asked = parser.parse_args()
    commit = current_commit()

    def write(rows: list[dict[str, Any]]) -> None:
        report = {"machine": facts(), "commit": commit, "rows": rows}
        asked.out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        asked.out.write_text(page(report), encoding="utf-8")
        draw(rows, asked.out.with_suffix(".svg"))

    with tempfile.TemporaryDirectory(prefix="soak-") as place, RealFederation(Path(place) / "three") as federation:
        soak(federation, 60 * asked.minutes, write)
    print(asked.out.read_text())


if __name__ == "__main__":
    main()
