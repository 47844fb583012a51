"""How commands talk: results to standard output, progress and complaints to standard error, errors as exit codes."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec

import typer
from rich.console import Console, RenderableType

from silograph._util.extras import required
from silograph.errors import ParameterError, SilographError

BAD_INPUT, WRONG_USAGE = 1, 2
NOT_CONVERGED = 3  # exit code: the graph was learned and written, but not to the tolerance asked for
PIPE_WIDTH = 160  # of what is printed to a file or another program
complaints = Console(stderr=True, soft_wrap=True)
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Output:
    """How much to say, and in which form."""

    as_json: bool
    quiet: bool

    @property
    def progress(self) -> bool:
        """Whether to draw progress."""
        return not self.quiet and complaints.is_terminal

    def result(
        self, record: dict[str, Any], table: Callable[[], RenderableType], notes: Callable[[], list[str]]
    ) -> None:
        """Print the record or the table that ends a run."""
        if self.as_json:
            typer.echo(json.dumps(record, indent=2, ensure_ascii=False))
        elif not self.quiet:
            Console().print(table())
            for note in notes():
                tell("Note", "cyan", note)


def guarded(
    work: Callable[[], None],
    *,
    resumable: Path | None = None,
    command: str = "silograph learn",
    go_on: str | None = None,
) -> None:
    """Run a command; an error that a user can cure becomes a message and an exit code.

    An interrupted one says how to go on, where it can: `go_on` in words, or the folder of a `resumable` run of
    `command`.
    """
    try:
        work()
    except SilographError as error:
        tell(type(error).__name__, "red", str(error))
        raise typer.Exit(WRONG_USAGE if isinstance(error, ParameterError) else BAD_INPUT) from None
    except KeyboardInterrupt:
        from silograph.runs.record import CHECKPOINT

        if resumable is not None and (resumable / CHECKPOINT).is_dir():
            go_on = f"go on with: {command} --resume {resumable}"
        complaints.print(f"Interrupted; {go_on or 'nothing was written'}.", markup=False, highlight=False)
        raise typer.Exit(130) from None
    except BrokenPipeError:  # the reader of our output left, as `| head` does
        sys.stderr.close()
        raise typer.Exit(0) from None


def guard(go_on: str | None = None) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Run a whole command by `guarded`."""

    def wrap(command: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(command)
        def run(*arguments: P.args, **options: P.kwargs) -> None:
            guarded(lambda: command(*arguments, **options), go_on=go_on)

        return run

    return wrap


def need_nvflare() -> None:
    """Raise, with what to install, where federations cannot run."""
    required("nvflare", extra="nvflare", purpose="to run a federation or to take part in one")


def warn(message: str) -> None:
    """Say something that a user should know."""
    tell("Warning", "yellow", message)


def tell(kind: str, colour: str, message: str) -> None:
    """Say something, after a word that says of what kind it is."""
    complaints.print(f"[bold {colour}]{kind}:[/bold {colour}] ", end="")
    complaints.print(message, markup=False, highlight=False)
