"""What every command says of a table: how far its reading is, and what to look at twice."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


def doubts(name: str, n_nodes: int, n_samples: int | None, row_counter: str | None) -> list[str]:
    """What a user should look at twice in a table."""
    notes = []
    if n_samples is not None and n_nodes > 2 * n_samples:
        notes.append(
            f"{name} has {n_nodes} nodes (columns) but only {n_samples} samples (rows). Is it the other way round?"
        )
    if row_counter is not None:
        notes.append(
            f"Column {row_counter!r} of {name} counts the rows and was taken for a node. "
            f"If it is not one: --drop {row_counter}"
        )
    return notes


def progress_bar(shown: bool) -> AbstractContextManager[Progress]:
    """Progress on the terminal's error stream."""
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    return progress if shown else nullcontext(progress)  # never started, it draws nothing
