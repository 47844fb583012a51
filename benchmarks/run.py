"""Run the benchmarks: every part of every suite, case by case, each saved as soon as it is measured.

Run again after it was stopped, it goes on: what was measured by the same code with the same settings is kept. For
example `python -m benchmarks.run --quick`, `python -m benchmarks.run joint --parts rounds`, or with `--anew` to measure
again what is there.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from subprocess import TimeoutExpired

from benchmarks.page import write_page
from benchmarks.processes import ROOT, StepError
from benchmarks.saved import Saved, made_by
from benchmarks.suite import FULL, NAMES, QUICK, Case, Effort, find_suite

RESULTS = ROOT / "benchmarks" / "results"
UNKNOWN = 10.0  # seconds that a case is taken to need of which nothing is known


@dataclass(frozen=True, slots=True)
class Task:
    """A case to measure, and where it is saved."""

    saved: Saved
    part: str
    case: Case

    def __str__(self) -> str:
        return f"{self.saved.suite.name}, {self.part}: {self.case}"

    def expected(self) -> float:
        """How many seconds it took before, or others of its part did."""
        before = self.saved.find(self.part, self.case)
        if before is not None:
            return float(before["took"])
        part = self.saved.suite.parts[self.part]
        known = [one["took"] for case in (*part.full, *part.quick) if (one := self.saved.find(self.part, case))]
        return mean(known) if known else UNKNOWN


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is not there yet, save, show."""
    options = _options(arguments)
    effort = QUICK if options.quick else FULL
    effort = replace(effort, time_limit=options.time_limit or effort.time_limit)
    prefix = "quick." if options.quick else ""
    saved = [Saved(find_suite(name), options.out / f"{prefix}{name}.json") for name in options.suites]
    failed = run([task for one in saved for task in _tasks(one, options, effort)], effort)
    for one in filter(None, saved):
        one.write_page().show()
    if options.out == RESULTS and not options.quick:
        print(write_page())
    if failed:
        raise SystemExit("\n".join(["Not measured, run again to try once more:", *failed]))


def run(tasks: Sequence[Task], effort: Effort) -> list[str]:
    """Measure one after the other, telling how far it is and how long the rest may take; what failed, and why."""
    failed = []
    for k, task in enumerate(tasks):
        left = sum(later.expected() for later in tasks[k:])
        print(f"[{k + 1}/{len(tasks)}, about {left / 60:.0f} min left] {task}", flush=True)
        try:
            task.saved.measure(task.part, task.case, effort)
        except (StepError, TimeoutExpired) as error:
            failed.append(f"{task}: {error}")
            continue
        task.saved.write_page()
    return failed


def _tasks(saved: Saved, options: argparse.Namespace, effort: Effort) -> list[Task]:
    """What is still to be measured of a suite."""
    made = made_by(saved.suite.name, effort)
    tasks, kept = [], 0
    for name, part in saved.suite.parts.items():
        for case in part.quick if effort.quick else part.full:
            if (options.parts and name not in options.parts) or not any(word in str(case) for word in options.only):
                continue
            if saved.has(name, case, made) and not options.anew:
                kept += 1
            else:
                tasks.append(Task(saved, name, case))
    print(f"{saved.suite.name}: {kept} cases measured before and kept, {len(tasks)} to measure", flush=True)
    return tasks


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="suite", help=f"{', '.join(NAMES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small cases only, in two minutes")
    parser.add_argument("--time-limit", type=float, help=f"seconds per solver and instance ({FULL.time_limit:g})")
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[""], help="cases named by one of these words")
    parser.add_argument("--parts", nargs="+", help="what to measure (all parts)")
    parser.add_argument("--anew", action="store_true", help="measure also what this code was measured on before")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to save in (benchmarks/results)")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.suites) - set(NAMES)):
        parser.error(f"the suites are {', '.join(NAMES)}, not {', '.join(unknown)}")
    options.suites = options.suites or NAMES
    parts = list(dict.fromkeys(part for name in options.suites for part in find_suite(name).parts))
    if unknown := sorted(set(options.parts or ()) - set(parts)):
        parser.error(f"{', '.join(options.suites)}: the parts are {', '.join(parts)}, not {', '.join(unknown)}")
    return options


if __name__ == "__main__":
    main()
