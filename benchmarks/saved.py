"""What is on disk: every case that was measured, with what it was measured by. A case is kept if that is unchanged."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.machine import facts
from benchmarks.processes import ROOT
from benchmarks.report import Page
from benchmarks.suite import Case, Effort, Part, Record, Suite
from silograph._util.files import write_text

HERE = ROOT / "benchmarks"
MEASURING = ("contest.py", "measure.py", "processes.py", "solver.py", "suite.py", "worker.py")
SHOWING = {"report.py", "claims.py"}  # of a suite: they can change without anything being measured anew


def made_by(suite: str, effort: Effort) -> Record:
    """All that a measurement depends on, beside its case."""
    machine = facts()
    return {
        "code": code_version(suite),
        "effort": asdict(effort),
        **{name: machine[name] for name in ("cpu", "cpu_count", "python", "versions")},
    }


def code_version(suite: str) -> str:
    """A short name for the code that is measured and that measures, as it is now."""
    spec = find_spec("silograph")
    assert spec is not None
    assert spec.origin is not None
    own = [file for file in (HERE / suite).rglob("*.py") if file.name not in SHOWING]
    shared = [*(HERE / name for name in MEASURING), ROOT / "testing" / "silo_problems.py"]
    files = [*sorted(Path(spec.origin).parent.rglob("*.py")), *shared, *sorted(own)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


class Saved:
    """A suite's file, written whole after each case, and its page beside it."""

    def __init__(self, suite: Suite, path: Path) -> None:
        self.suite, self.path = suite, path
        self._report: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def __bool__(self) -> bool:
        return bool(self._report)

    def find(self, part: str, case: Case) -> Record | None:
        """What was last measured on this case, by whatever code."""
        same = (one for one in self._report.get(part, []) if one["case"] == asdict(case))
        return next(same, None)

    def has(self, part: str, case: Case, made: Mapping[str, Any]) -> bool:
        """Whether this case was measured by just this code, with just these settings."""
        record = self.find(part, case)
        return record is not None and record["made"] == made

    def measure(self, name: str, case: Case, effort: Effort) -> None:
        """Measure one case and save it, with the load there was before and the time it took."""
        part = self.suite.parts[name]
        before, begun = round(os.getloadavg()[0], 2), time.monotonic()
        made = made_by(self.suite.name, effort)
        found = part.measure(case, effort, self._report.get(name, []))
        told = {"case": asdict(case), "made": made, "load": before, "took": round(time.monotonic() - begun, 1)}
        rest = [one for one in self._report.get(name, []) if one["case"] != asdict(case)]
        self._report[name] = _in_order([*rest, told | found], part, effort)
        self._report["machine"] = facts()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, json.dumps(self._report, indent=1) + "\n")

    def write_page(self) -> Page:
        """Make the page anew."""
        page = page_of(self.suite.name, self._report)
        write_text(self.path.with_suffix(".md"), page.markdown())
        return page


def page_of(suite: str, report: Record) -> Page:
    """The page of a suite that its saved measurements make."""
    page: Page = importlib.import_module(f"benchmarks.{suite}.report").page(report)
    return page


def _in_order(records: list[Record], part: Part, effort: Effort) -> list[Record]:
    """As in the catalogue, without cases that are no longer there."""
    order = [asdict(case) for case in (part.quick if effort.quick else part.full)]
    return sorted((one for one in records if one["case"] in order), key=lambda one: order.index(one["case"]))
