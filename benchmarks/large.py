"""Many nodes: seconds and memory of one silo, in Python and from the command line, and of a few large silos.

    python -m benchmarks.large                  all: 30 000 and 100 000 nodes, and 5 silos of 3000
    python -m benchmarks.large 30000 --silos 0  some of it

Signals are the one-silo benchmark's smooth ones, and the tests' of silos that differ; 100 samples, in single precision,
as .npy files. Every measurement is a process of its own, whose time and peak memory the operating system tells;
compiled loops are in the cache before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.one_silo.datasets import N_SAMPLES, smooth
from silograph import ConsensusGraph, SmoothGraph, read_run
from testing.silo_problems import silo_signals

RESULTS = Path(__file__).parent / "results"
SEED = 20246
WARM_UP = 10_000  # nodes: the least that take the way of many
COLUMNS = (
    "what",
    "nodes",
    "seconds",
    "CPU seconds",
    "peak GB",
    "edges",
    "mean degree",
    "relative gap",
    "seconds inside",
)


def make(path: str, n_nodes: str) -> None:
    """Write a table of signals."""
    np.save(path, smooth(int(n_nodes), np.random.default_rng(SEED)).T.astype(np.float32))


def make_silos(n_nodes: str, *paths: str) -> None:
    """Write the tables of silos that differ and have much in common."""
    rng = np.random.default_rng(SEED)
    for path, table in zip(paths, silo_signals(rng, "different", len(paths), int(n_nodes), N_SAMPLES), strict=True):
        np.save(path, table.astype(np.float32))


def fit(path: str) -> dict[str, Any]:
    """One silo."""
    X, begun = np.load(path), perf_counter()
    model = SmoothGraph().fit(X)
    return _told(model.graph_.n_edges, model.degree_, model.gap_, perf_counter() - begun)


def fit_silos(*paths: str) -> dict[str, Any]:
    """Several silos and their consensus."""
    tables, begun = [np.load(path) for path in paths], perf_counter()
    model = ConsensusGraph().fit(tables)
    graph = model.consensus_graph_
    return _told(graph.n_edges, graph.mean_degree, model.gap_, perf_counter() - begun) | {"rounds": model.n_rounds_}


def _told(n_edges: int, degree: float, gap: float, seconds: float) -> dict[str, Any]:
    return {"edges": n_edges, "mean degree": degree, "relative gap": gap, "seconds inside": round(seconds, 2)}


STEPS = {"make": make, "make_silos": make_silos, "fit": fit, "fit_silos": fit_silos}


def measured(*command: str) -> tuple[dict[str, float], str]:
    """What a process took, and what it printed."""
    begun = perf_counter()
    process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: ended with {process.returncode}.")
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    took = {
        "seconds": round(perf_counter() - begun, 2),
        "CPU seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak GB": round(usage.ru_maxrss * unit / 1e9, 3),
    }
    return took, printed


def one_silo(folder: Path, n_nodes: int) -> list[dict[str, Any]]:
    """A table, by the estimator and by the command."""
    table, run = folder / f"{n_nodes}.npy", folder / f"run-{n_nodes}"
    measured("benchmarks.large", "--step", "make", str(table), str(n_nodes))
    took, printed = measured("benchmarks.large", "--step", "fit", str(table))
    rows = [{"what": "SmoothGraph().fit", "nodes": n_nodes, **took, **json.loads(printed)}]
    took, _ = measured("silograph", "learn", str(table), "--out", str(run))
    result = read_run(run).record.result
    inside = _told(result.edges, result.mean_degree or np.nan, result.relative_gap or np.nan, result.seconds)
    return [*rows, {"what": "silograph learn", "nodes": n_nodes, **took, **inside}]


def several_silos(folder: Path, n_silos: int, n_nodes: int) -> list[dict[str, Any]]:
    """Silos that differ, by the estimator."""
    tables = [str(folder / f"silo-{number}.npy") for number in range(n_silos)]
    measured("benchmarks.large", "--step", "make_silos", str(n_nodes), *tables)
    took, printed = measured("benchmarks.large", "--step", "fit_silos", *tables)
    return [{"what": f"ConsensusGraph().fit, {n_silos} silos", "nodes": n_nodes, **took, **json.loads(printed)}]


def page(rows: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """The rows as a table."""
    where = f"on {facts['cpu']}, {facts['cpu_count']} cores, whose load was {facts['load']} when it began"
    lines = ["# Many nodes", "", f"`python -m benchmarks.large` {where}.", ""]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for row in rows:
        shown = {**row, "relative gap": f"{row['relative gap']:.1e}", "mean degree": f"{row['mean degree']:.3f}"}
        lines.append("| " + " | ".join(str(shown[column]) for column in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write both files."""
    parser = argparse.ArgumentParser(description="Seconds and memory with many nodes.")
    parser.add_argument("nodes", nargs="*", type=int, default=[30_000, 100_000])
    parser.add_argument("--silos", type=int, default=5, help="how many silos of 3000 nodes; 0: none")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write large.json and large.md to")
    options = parser.parse_args()
    facts = machine.facts() | {"threads": os.cpu_count()}
    rows: list[dict[str, Any]] = []
    with TemporaryDirectory() as name:
        one_silo(Path(name), WARM_UP)
        for n_nodes in options.nodes:
            rows += one_silo(Path(name), n_nodes)
        if options.silos:
            rows += several_silos(Path(name), options.silos, 3000)
    (options.out / "large.json").write_text(json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n")
    (options.out / "large.md").write_text(page(rows, facts))
    print(page(rows, facts))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--step"]:
        print(json.dumps(STEPS[sys.argv[2]](*sys.argv[3:])))
    else:
        main()
