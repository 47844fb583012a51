"""Run the benchmark: every competitor on every instance, each pair in a process of its own, one thread each.

For example `python -m benchmarks.run --quick`, or `python -m benchmarks.run --time-limit 30`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.catalogue import COMPETITORS, DATASETS, FULL, OURS, QUICK, Case, Competitor
from benchmarks.machine import facts
from benchmarks.report import markdown, show

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")
ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 6  # times the limit, for scoring and repeats; after that the process is ended
BUILDING = 600  # seconds


def main() -> None:
    """Measure, save, show."""
    options = _options()
    done = _done(options.out) if options.resume else {}
    every = QUICK if options.quick else FULL
    cases = [case for case in every if case.dataset in options.datasets or case in done]
    report: dict[str, Any] = {"machine": facts(), "time_limit": options.time_limit, "records": []}
    competitors = [competitor for competitor in COMPETITORS if competitor.quick or not options.quick]
    competitors = [competitor for competitor in competitors if competitor.needs is None or find_spec(competitor.needs)]
    for k, case in enumerate(cases, start=1):
        print(f"[{k}/{len(cases)}] {case}" + (": measured before" if case in done else ""), flush=True)
        record = done.get(case) or _record(case, competitors, report["records"], options.time_limit)
        report["records"].append(record)
        rest = [done[later] for later in cases[k:] if later in done]
        _save(report | {"records": [*report["records"], *rest]}, options.out)
    show(report)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small instances only, in under a minute")
    parser.add_argument("--time-limit", type=float, help="seconds per solver and instance (60; with --quick 2)")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--resume", action="store_true", help="keep what the file already has")
    parser.add_argument("--out", type=Path, help="where to save (benchmarks/results/one_silo.json, or quick.json)")
    options = parser.parse_args()
    options.time_limit = options.time_limit or (2.0 if options.quick else 60.0)
    options.out = options.out or ROOT / "benchmarks" / "results" / ("quick.json" if options.quick else "one_silo.json")
    return options


def _done(saved: Path) -> dict[Case, dict[str, Any]]:
    if not saved.exists():
        return {}
    return {Case(**record["case"]): record for record in json.loads(saved.read_text())["records"]}


def _record(case: Case, competitors: list[Competitor], earlier: list[dict[str, Any]], limit: float) -> dict[str, Any]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "case.json").write_text(json.dumps(asdict(case)))
        _work(["build", name], BUILDING)
        instance = json.loads((folder / "instance.json").read_text())
        solvers = {}
        for competitor in competitors:
            if case.n_nodes > competitor.max_nodes:
                continue
            if _gave_up(competitor.name, case, earlier):
                solvers[competitor.name] = {"outcome": "skipped", "seconds": {}}
                continue
            solvers[competitor.name] = result = _solved(folder, competitor.name, limit)
            times = ", ".join(f"{1e3 * seconds:.3g} ms to {target}" for target, seconds in result["seconds"].items())
            print(f"    {competitor.name}: {times or 'no target reached'}", flush=True)
    return {"case": asdict(case), "instance": instance, "solvers": solvers}


def _gave_up(name: str, case: Case, earlier: list[dict[str, Any]]) -> bool:
    """Whether the solver missed even the easy target on a smaller instance of the same kind."""
    for record in earlier:
        same_kind = (record["case"]["dataset"], record["case"]["degree"]) == (case.dataset, case.degree)
        result = record["solvers"].get(name)
        if name != OURS and same_kind and record["case"]["n_nodes"] < case.n_nodes and result and not result["seconds"]:
            return True
    return False


def _solved(folder: Path, name: str, limit: float) -> dict[str, Any]:
    try:
        _work(["solve", str(folder), name, str(limit)], PATIENCE * limit + 60)
    except subprocess.TimeoutExpired:
        return {"outcome": "out of time", "seconds": {}}
    except subprocess.CalledProcessError as error:
        return {"outcome": "failed", "seconds": {}, "reason": error.stderr.strip().splitlines()[-1]}
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


def _work(arguments: list[str], patience: float) -> None:
    subprocess.run(
        [sys.executable, "-m", "benchmarks.worker", *arguments],
        cwd=ROOT,
        env=os.environ | ONE_THREAD,
        timeout=patience,
        check=True,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _save(report: dict[str, Any], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    out.with_suffix(".md").write_text(markdown(report))


if __name__ == "__main__":
    main()
