"""What worker processes do: write three small tables, run the command on them, read what it used."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.processes import THREADS
from silograph.datasets.synthetic import make_silos

N_SILOS, N_NODES, N_SAMPLES = 3, 20, 200


def run(folder: Path, name: str, cold: str, laps: str) -> dict[str, Any]:
    """Processor and wall-clock seconds of the command, once per lap; unless cold, after a run that fills the cache."""
    drawn = make_silos(n_silos=N_SILOS, n_nodes=N_NODES, n_samples=N_SAMPLES, seed=0)
    for silo, signals in drawn.signals.items():
        header = ",".join(f"node{v}" for v in range(N_NODES))
        np.savetxt(folder / f"{silo}.csv", signals, delimiter=",", header=header, comments="")
    tables = [str(folder / f"{silo}.csv") for silo in drawn.signals]
    command = ["--help"] if name == "help" else ["learn", *tables, "--force", "--out", str(folder / "run")]
    if int(cold):
        turns = [_used(command, folder / f"cache{lap}") for lap in range(int(laps))]
    else:
        _used(command, folder / "cache")
        turns = [_used(command, folder / "cache") for _ in range(int(laps))]
    kinds = {kind: [turn[kind] for turn in turns] for kind in ("seconds", "wall_seconds")}
    return {"tables": {"silos": N_SILOS, "nodes": N_NODES, "samples": N_SAMPLES}} | kinds


def _used(arguments: list[str], cache: Path) -> dict[str, float]:
    """What a fresh process of the command uses, with as many threads as users have."""
    env = {key: value for key, value in os.environ.items() if key not in THREADS}
    before, begun = _children(), perf_counter()
    subprocess.run(
        [sys.executable, "-m", "silograph", *arguments],
        env=env | {"NUMBA_CACHE_DIR": str(cache)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return {"seconds": _children() - before, "wall_seconds": perf_counter() - begun}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


STEPS: dict[str, Callable[..., Any]] = {"run": run}
