"""Run a benchmark: every competitor on every instance, each pair in a process of its own.

For example `python -m benchmarks.run one_silo --quick`, or `python -m benchmarks.run joint --parts rounds` to measure
these anew and keep the rest.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.machine import facts
from benchmarks.processes import ROOT, attempt, build
from benchmarks.report import Page
from benchmarks.suite import NAMES, Case, Record, Suite

INSTANCES = "instances"  # the part that every suite has
SCORING = 6  # times the limit, for scoring and repeats; after that, and a minute for imports, a process is ended
RESULTS = ROOT / "benchmarks" / "results"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, save, show."""
    suite, options = _options(arguments)
    report = json.loads(options.out.read_text()) if options.out.exists() else {}
    report["machine"] = facts()
    if INSTANCES in options.parts:
        _measure_instances(suite, report, options)
    for part in (part for part in suite.parts if part in options.parts):
        found = suite.parts[part](options.quick)
        report[part] = [{"code": code_version()} | one for one in found] if isinstance(found, list) else found
    _save(suite, report, options.out).show()


def code_version() -> str:
    """A short name for the library's code as it is now."""
    spec = find_spec("silograph")
    assert spec is not None
    assert spec.origin is not None
    files = sorted(Path(spec.origin).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def _options(arguments: Sequence[str] | None) -> tuple[Suite, argparse.Namespace]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=NAMES)
    parser.add_argument("--quick", action="store_true", help="small instances only, in about a minute")
    parser.add_argument("--time-limit", type=float, help="seconds per solver and instance")
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[""], help="instances named by one of these words")
    parser.add_argument("--parts", nargs="+", help="what to measure anew (all parts of the suite)")
    parser.add_argument("--resume", action="store_true", help="keep the instances that this code was measured on")
    parser.add_argument("--out", type=Path, help="where to save (benchmarks/results/SUITE.json, or quick.SUITE.json)")
    options = parser.parse_args(arguments)
    suite: Suite = importlib.import_module(f"benchmarks.{options.suite}.catalogue").SUITE
    parts = (INSTANCES, *suite.parts)
    options.parts = options.parts or parts
    if unknown := set(options.parts) - set(parts):
        parser.error(f"{options.suite} has the parts {', '.join(parts)}, not {', '.join(sorted(unknown))}")
    options.scale = suite.quick if options.quick else suite.full
    options.time_limit = options.time_limit or options.scale.time_limit
    options.out = options.out or RESULTS / f"{'quick.' if options.quick else ''}{suite.name}.json"
    return suite, options


def _measure_instances(suite: Suite, report: dict[str, Any], options: argparse.Namespace) -> None:
    """Fill in the part of all instances, saving after each."""
    done = _measured_before(suite, report) if options.resume else {}
    cases = [case for case in options.scale.cases if case in done or any(word in str(case) for word in options.only)]
    report[INSTANCES] = []
    for k, case in enumerate(cases, start=1):
        print(f"[{k}/{len(cases)}] {case}" + (": measured before" if case in done else ""), flush=True)
        report[INSTANCES].append(done.get(case) or _measure(suite, case, report[INSTANCES], options))
        rest = [done[later] for later in cases[k:] if later in done]
        _save(suite, report | {INSTANCES: [*report[INSTANCES], *rest]}, options.out)


def _measured_before(suite: Suite, report: dict[str, Any]) -> dict[Case, Record]:
    same = (record for record in report.get(INSTANCES, []) if record["code"] == code_version())
    return {suite.case(**record["case"]): record for record in same}


def _measure(suite: Suite, case: Case, earlier: Sequence[Record], options: argparse.Namespace) -> Record:
    limit: float = options.time_limit
    measured = {"code": code_version(), "time_limit": limit, "load": round(os.getloadavg()[0], 2)}
    with TemporaryDirectory() as name:
        folder = Path(name)
        instance, solvers = build(suite.name, folder, case), {}
        for competitor in suite.competitors:
            too_large = competitor.max_nodes is not None and case.n_nodes > competitor.max_nodes
            if too_large or (options.quick and not competitor.quick):
                continue
            if suite.gave_up(competitor, case, earlier):
                solvers[competitor.name] = {"outcome": "skipped", "seconds": {}}
                continue
            result = attempt(suite.name, competitor, "solve", folder, [limit], seconds=SCORING * limit + 60)
            solvers[competitor.name] = result
            times = ", ".join(f"{1e3 * seconds:.3g} ms to {target}" for target, seconds in result["seconds"].items())
            print(f"    {competitor.name}: {times or result['outcome'] + ', no target reached'}", flush=True)
    return {"case": asdict(case), "instance": instance, "solvers": solvers} | measured


def _save(suite: Suite, report: dict[str, Any], out: Path) -> Page:
    page: Page = importlib.import_module(f"{suite.package}.report").page(report)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    out.with_suffix(".md").write_text(page.markdown())
    return page


if __name__ == "__main__":
    main()
