"""How commands talk: results to standard output, progress and complaints to standard error, errors as exit codes."""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import typer
from rich.console import Console, RenderableType

from silograph._util.extras import required
from silograph._util.naming import Way, as_option, naming
from silograph._util.terminal import visible
from silograph.errors import ParameterError, SilographError

if TYPE_CHECKING:
    from silograph.runs.record import RunRecord

BAD_INPUT, WRONG_USAGE = 1, 2
NOT_CONVERGED = 3  # exit code: the graph was learned and written, but not to the tolerance asked for
PIPE_WIDTH = 160  # of what is printed to a file or another program
# Without emoji: a fingerprint such as AB:CD:… is to be read as it is
complaints = Console(stderr=True, soft_wrap=True, emoji=False)
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

    def result(self, record: "RunRecord", table: Callable[[], RenderableType], notes: Callable[[], list[str]]) -> None:
        """Print the record or the table that ends a run."""
        if self.as_json:
            typer.echo(record.to_json(), nl=False)
        elif not self.quiet:
            Console().print(table())
            for text in notes():
                self.note(text)

    def note(self, text: str) -> None:
        """Say something to a person who may want to know."""
        if not (self.as_json or self.quiet):
            tell("Note", "cyan", text)


def run_guarded(
    work: Callable[[], None], *, resumable: Path | None = None, go_on: str | None = None, way: Way = as_option
) -> None:
    """Run a command; an error that a user can cure becomes a message and an exit code, settings named in this `way`.

    An interrupted one says how to go on, where it can: `go_on` in words, or the folder of a `resumable` run.
    """
    try:
        with naming(way):
            work()
    except SilographError as error:
        tell(type(error).__name__, "red", str(error))
        raise typer.Exit(WRONG_USAGE if isinstance(error, ParameterError) else BAD_INPUT) from None
    except KeyboardInterrupt:
        from silograph.runs.layout import RunLayout

        if resumable is not None and RunLayout(resumable).is_unfinished:
            go_on = f"go on with: {RunLayout(resumable).resume_command()}"
        complaints.print(f"Interrupted; {go_on or 'nothing was written'}.", markup=False, highlight=False)
        raise typer.Exit(130) from None
    except BrokenPipeError:  # the reader of our output left, as `| head` does
        sys.stderr.close()
        raise typer.Exit(0) from None


def guard(go_on: str | None = None, *, way: Way = as_option) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Run a whole command by `run_guarded`."""

    def wrap(command: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(command)
        def run(*arguments: P.args, **options: P.kwargs) -> None:
            run_guarded(lambda: command(*arguments, **options), go_on=go_on, way=way)

        return run

    return wrap


def need_nvflare() -> None:
    """Raise, with what to install, where federations cannot run."""
    required("nvflare", extra="nvflare", purpose="to run a federation or to take part in one")


def span(seconds: float) -> str:
    """A length of time, as people say it."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def say(line: str) -> None:
    """Print to standard output, each line as it is."""
    Console(soft_wrap=True, emoji=False).print(visible(line, lines=True), markup=False, highlight=False)


def warn(message: str) -> None:
    """Say something that a user should know."""
    tell("Warning", "yellow", message)


def tell(kind: str, colour: str, message: str) -> None:
    """Say something, after a word that says of what kind it is."""
    complaints.print(f"[bold {colour}]{kind}:[/bold {colour}] ", end="")
    complaints.print(visible(message, lines=True), markup=False, highlight=False)
