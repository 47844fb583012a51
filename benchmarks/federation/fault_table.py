"""The table of faults: a row for every disturbed run, on disk after each, all of one state of the code."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.federation.disturbed import Stage
from benchmarks.machine import facts

ROOT = Path(__file__).resolve().parents[2]
RECENT = 3  # undisturbed runs that say how long one takes now
UNDISTURBED = "undisturbed"


@dataclass(slots=True)
class Table:
    """What was measured so far."""

    path: Path  # of the page; its data are beside it
    commit: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path) -> Table:
        """The rows that were measured on the code as it is now; others are dropped."""
        commit, data = current_commit(), path.with_suffix(".json")
        known = json.loads(data.read_text())["rows"] if data.exists() else []
        kept = [row for row in known if _source(row["commit"]) == _source(commit)]
        if len(kept) < len(known):
            print(f"{len(known) - len(kept)} rows of other code are dropped.", flush=True)
        return cls(path, commit, kept)

    def of(self, mode: str, fault: str) -> list[dict[str, Any]]:
        """The rows of a fault."""
        return [row for row in self.rows if (row["mode"], row["fault"]) == (mode, fault)]

    def usual(self, mode: str) -> float:
        """Seconds of an undisturbed run, as busy as the machine is these days."""
        return median(row["seconds"] for row in self.of(mode, UNDISTURBED)[-RECENT:])

    def add_undisturbed(self, mode: str, seconds: float) -> None:
        """A run that nothing disturbed."""
        self._add({"mode": mode, "fault": UNDISTURBED, "seconds": seconds})

    def add(self, mode: str, fault: str, stage: Stage, seconds: float, wrong: str) -> None:
        """A disturbed run."""
        record = stage.out / "run.json"
        attempts = json.loads(record.read_text())["federation"]["attempts"] if record.exists() else None
        about = {"site": stage.site, "moment": stage.moment, "rounds": stage.rounds, "lasted": stage.lasted}
        extra = seconds - stage.lasted - self.usual(mode)
        row = {"mode": mode, "fault": fault, **about, "seconds": seconds, "extra": extra, "attempts": attempts}
        self._add({**row, "wrong": wrong})

    def _add(self, row: dict[str, Any]) -> None:
        self.rows.append({**row, "load": facts()["load"], "commit": self.commit})
        told = ", ".join(f"{name} {_short(value)}" for name, value in row.items() if value not in (None, ""))
        print(told, flush=True)
        self.write()

    def write(self) -> None:
        """Write the page and the data."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        data = {"machine": facts(), "rows": self.rows}
        self.path.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        self.path.write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """The page of what was measured."""
        machine, cases = facts(), [row for row in self.rows if row["fault"] != UNDISTURBED]
        loads, commits = [row["load"] for row in self.rows], dict.fromkeys(row["commit"] for row in self.rows)
        lines = [
            "# What a federation survives",
            "",
            "A server and three sites on one machine, one fault per run at a random moment, and how many of these",
            "runs ended with just the bits of an undisturbed one: see `benchmarks/federation/faults.py`.",
            f"{machine['cpu']}, {machine['cpu_count']} cores, load {min(loads):.0f} to {max(loads):.0f}; commit "
            f"{', '.join(commits)}{', whose src is the same' if len(commits) > 1 else ''}.",
            f"Extra seconds: above the median of the last {RECENT} undisturbed runs, without what the fault lasts.",
            "",
            *(f"Undisturbed runs, {mode}: {_span(self.of(mode, UNDISTURBED))}." for mode in self._modes()),
            "",
            "| fault | sums | times | identical | attempts (mean) | extra seconds: median | worst |",
            "|---|---|---|---|---|---|---|",
            *(_line(fault, mode, self.of(mode, fault)) for fault, mode in dict.fromkeys(
                (row["fault"], row["mode"]) for row in cases)),
        ]  # fmt: skip
        wrong = [f"- {row['fault']}, {row['mode']}: {row['wrong']}" for row in cases if row["wrong"]]
        return "\n".join([*lines, *(["", "Not identical:", "", *wrong] if wrong else [])]) + "\n"

    def _modes(self) -> list[str]:
        return list(dict.fromkeys(row["mode"] for row in self.rows if row["fault"] == UNDISTURBED))


def _line(fault: str, mode: str, rows: list[dict[str, Any]]) -> str:
    extra, attempts = [row["extra"] for row in rows], [row["attempts"] or 0 for row in rows]
    same = f"{sum(not row['wrong'] for row in rows)} of {len(rows)}"
    cells = [fault, mode, str(len(rows)), same, f"{mean(attempts):.1f}", f"{median(extra):.0f}", f"{max(extra):.0f}"]
    return f"| {' | '.join(cells)} |"


def _span(rows: list[dict[str, Any]]) -> str:
    seconds = [row["seconds"] for row in rows]
    return f"{min(seconds):.0f} to {max(seconds):.0f} s ({len(rows)})"


def _short(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def current_commit() -> str:
    """The commit that is measured; its code must be the one that lies here."""
    changed = _git("status", "--porcelain", "--", "src", "testing")
    if changed:
        raise SystemExit(f"Rows carry the commit that they were measured on. Commit first:\n{changed}")
    return _git("rev-parse", "--short=10", "HEAD")


def _source(commit: str) -> str | None:
    """The state of the code in a commit; none if the commit is not known here."""
    try:
        return _git("rev-parse", f"{commit}:src")
    except subprocess.CalledProcessError:
        return None


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
