"""Run the joint benchmark: every competitor on every instance, each pair in a process of its own.

For example `python -m benchmarks.joint.run --quick`, or `--parts rounds` to measure these anew and keep the rest.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.joint import catalogue
from benchmarks.joint.catalogue import COMPETITORS, NEIGHBOUR_CASE, NEIGHBOURS, Case, Competitor
from benchmarks.joint.report import markdown, show
from benchmarks.machine import facts

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")
ROOT = Path(__file__).resolve().parents[2]
PARTS = ("instances", "neighbours", "scaling", "rounds")
PATIENCE = 6  # times the limit, for scoring and repeats; after that the process is ended
LONGEST = 900  # seconds for everything that has no limit of its own


def main() -> None:
    """Measure, save, show."""
    options = _options()
    report = json.loads(options.out.read_text()) if options.out.exists() else {}
    report["machine"] = facts()
    if "instances" in options.parts:
        cases = catalogue.QUICK if options.quick else catalogue.FULL
        done = _done(report) if options.resume else {}
        report["instances"] = []
        for k, case in enumerate(cases, start=1):
            print(f"[{k}/{len(cases)}] {case}" + (": measured before" if case in done else ""), flush=True)
            report["instances"].append(done.get(case) or _instance(case, options.time_limit))
            rest = [done[later] for later in cases[k:] if later in done]
            _save(report | {"instances": [*report["instances"], *rest]}, options.out)
    if "neighbours" in options.parts:
        report["neighbours"] = _neighbours()
    if "scaling" in options.parts:
        counts = catalogue.QUICK_MEMORY_SILOS if options.quick else catalogue.MEMORY_SILOS
        report["scaling"] = [{"code": _code()} | _alone("silos", n_silos, catalogue.MEMORY_NODES) for n_silos in counts]
    if "rounds" in options.parts:
        code, largest = _code(), catalogue.QUICK_LARGEST if options.quick else catalogue.LARGEST
        report["rounds"] = [{"code": code} | record for record in _alone("rounds", largest)]
    _save(report, options.out)
    show(report)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small instance, in about a minute")
    parser.add_argument("--time-limit", type=float, help="seconds per solver and instance (20; with --quick 4)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--resume", action="store_true", help="keep the instances that the file already has")
    parser.add_argument("--out", type=Path, help="where to save (benchmarks/results/joint.json, or quick.joint.json)")
    options = parser.parse_args()
    options.time_limit = options.time_limit or (4.0 if options.quick else 20.0)
    name = "quick.joint.json" if options.quick else "joint.json"
    options.out = options.out or ROOT / "benchmarks" / "results" / name
    return options


def _done(report: dict[str, Any]) -> dict[Case, dict[str, Any]]:
    """What this very code was measured on."""
    same = (record for record in report.get("instances", []) if record["code"] == _code())
    return {Case(**record["case"]): record for record in same}


def _code() -> str:
    """A short name for the library's code as it is now."""
    spec = find_spec("silograph")
    assert spec is not None
    assert spec.origin is not None
    files = sorted(Path(spec.origin).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def _instance(case: Case, limit: float) -> dict[str, Any]:
    code, load = _code(), round(os.getloadavg()[0], 2)
    with TemporaryDirectory() as name:
        folder = Path(name)
        instance = _built(folder, case)
        solvers = {}
        for competitor in COMPETITORS:
            arguments = ["solve", name, competitor.name, str(limit)]
            solvers[competitor.name] = result = _result(folder, competitor, arguments, PATIENCE * limit + 60)
            times = ", ".join(f"{1e3 * seconds:.3g} ms to {target}" for target, seconds in result["seconds"].items())
            print(f"    {competitor.name}: {times or result['outcome'] + ', no target reached'}", flush=True)
    measured = {"code": code, "time_limit": limit, "load": load}
    return {"case": asdict(case), "instance": instance, "solvers": solvers} | measured


def _neighbours() -> dict[str, Any]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        instance = _built(folder, NEIGHBOUR_CASE)
        found: dict[str, Any] = {"case": asdict(NEIGHBOUR_CASE), "degree": instance["mean_degree"], "models": {}}
        for competitor in NEIGHBOURS:
            print(f"    {competitor.name}", flush=True)
            found["models"][competitor.name] = _result(folder, competitor, ["other", name, competitor.name], LONGEST)
    return found


def _built(folder: Path, case: Case) -> Any:
    (folder / "case.json").write_text(json.dumps(asdict(case)))
    return _work(folder, ["build", str(folder)], LONGEST)


def _alone(step: str, *arguments: int) -> Any:
    print(f"{step} {' '.join(map(str, arguments))}", flush=True)
    with TemporaryDirectory() as name:
        return _work(Path(name), [step, name, *map(str, arguments)], LONGEST)


def _result(folder: Path, competitor: Competitor, arguments: list[str], patience: float) -> dict[str, Any]:
    missing = [package for package in competitor.needs if not find_spec(package)]
    if missing:
        return {"outcome": "skipped", "seconds": {}, "reason": f"{', '.join(missing)} not installed"}
    try:
        found: dict[str, Any] = {"outcome": "ran"} | _work(folder, arguments, patience)
    except subprocess.TimeoutExpired:
        return {"outcome": "out of time", "seconds": {}}
    except subprocess.CalledProcessError as error:
        return {"outcome": "failed", "seconds": {}, "reason": error.stderr.strip().splitlines()[-1]}
    return found


def _work(folder: Path, arguments: Iterable[str], patience: float) -> Any:
    subprocess.run(
        [sys.executable, "-m", "benchmarks.joint.worker", *arguments],
        cwd=ROOT,
        env=os.environ | ONE_THREAD | {"PYTHONPATH": _search_path()},
        timeout=patience,
        check=True,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    return json.loads((folder / "result.json").read_text())


def _search_path() -> str:
    """The instances are those of the tests."""
    return os.pathsep.join(filter(None, [str(ROOT / "tests"), os.environ.get("PYTHONPATH")]))


def _save(report: dict[str, Any], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    out.with_suffix(".md").write_text(markdown(report))


if __name__ == "__main__":
    main()
