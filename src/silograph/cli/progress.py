"""Progress, drawn on the terminal's error stream."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

COMPILING = "Compiling (once; about 10 s)"


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


@contextmanager
def showing_progress(shown: bool) -> Iterator[Callable[[str, float | None], None]]:
    """Progress as `learn_files` tells it: what is going on, and the part that is done where that is known."""
    from silograph._util.kernel import telling_of_compiling  # loads numba, which not all commands need

    def tell() -> None:
        if shown:
            progress.console.print(COMPILING, highlight=False)

    with progress_bar(shown) as progress, telling_of_compiling(tell):
        whole, open_ended = (progress.add_task("", total=total, visible=False) for total in (1.0, None))

        def show(what: str, part: float | None) -> None:
            progress.update(whole, description=what, completed=part, visible=part is not None)
            progress.update(open_ended, description=what, visible=part is None)

        yield show
