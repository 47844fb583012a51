"""What `silograph site stability` does: learn half-samples, and say what they tell of each silo."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import typer

from silograph.analysis.false_edges import ASSUMES, SHARED
from silograph.cli.output import Output
from silograph.cli.progress import showing_progress
from silograph.cli.site.account import say
from silograph.federation.site.stability import Halves, tell_stability
from silograph.runs.record import StabilityRecord
from silograph.runs.request import DEFAULT_STABLE
from silograph.runs.results import NOT_OF_CONSENSUS


def show_stability(home: Path, run: str, n_halves: int, stable: float | None, *, as_json: bool) -> None:
    """Learn half-samples of all silos, write what they tell, and say it."""
    threshold = DEFAULT_STABLE if stable is None else stable
    asked = Halves(number=n_halves, threshold=threshold, graphs=stable is not None)
    with showing_progress(Output(as_json=as_json, quiet=False).progress) as show:
        folder, told = tell_stability(home, run, asked, show)
    if as_json:
        typer.echo(json.dumps({name: asdict(record) for name, record in told.items()}, indent=2))
    else:
        say(*_lines(told, asked), f"Written: {folder}", NOT_OF_CONSENSUS)


def _lines(told: Mapping[str, StabilityRecord], asked: Halves) -> list[str]:
    """The silos, each with its bound; what it assumes, or why there is none, is the same of all, and said once."""
    lines = [f"Found in at least {asked.threshold:.0%} of {asked.number} half-samples of your rows:"]
    for name, record in told.items():
        says = record.says.removesuffix(ASSUMES).removesuffix(SHARED).strip()
        lines.append(f"  {name}: {record.stable_edges} of {record.edges} edges. {says}".rstrip())
    return [*lines, *(text for text in (ASSUMES, SHARED) if any(one.says.endswith(text) for one in told.values()))]
