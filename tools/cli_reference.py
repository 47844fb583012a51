"""Write docs/reference/cli.md, the page of every command and option, from the command line's own definitions.

    python tools/cli_reference.py          writes the page; a test fails when the page is not what this would write

The page is made from names, types, defaults and help texts rather than from what `--help` prints: that depends on the
width of a terminal and on the versions of the libraries which draw it.
"""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from typer.main import get_command

from silograph.cli.app import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
INTRODUCTION = """\
# Command line

<!-- Made by `make docs` (tools/cli_reference.py) from the code. Do not edit it here. -->

Results go to standard output. Progress, notes and errors go to standard error. `--help` after any command prints what
stands here.
"""
WORDS = {float: "number", int: "whole number", str: "text", Path: "path"}


def rendered() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *_commands(get_command(app), "silograph")]).rstrip() + "\n"


def _commands(command: Any, name: str) -> Iterator[str]:
    """A command's section, then those of the commands in it."""
    below = getattr(command, "commands", {})
    yield f"{'#' * (1 + len(name.split()))} {name}\n"
    shown = [part for part in command.get_params(command.context_class(command)) if not _is_hidden(part)]
    arguments = [part for part in shown if part.param_type_name == "argument"]
    options = [part for part in shown if part.param_type_name == "option"]
    usage = [name, "[OPTIONS]", *map(_usage, arguments), *(["COMMAND"] if below else [])]
    yield f"```\n{' '.join(usage)}\n```\n"
    yield f"{_text(command.help or '')}\n"
    types = get_type_hints(inspect.unwrap(command.callback), include_extras=True) if command.callback else {}
    if arguments:
        yield _table(["argument", ""], [[f"`{_name(part)}`", _help(types[part.name])] for part in arguments])
    for panel in dict.fromkeys(getattr(part, "rich_help_panel", None) for part in options):
        rows = [_row(part, types) for part in options if getattr(part, "rich_help_panel", None) == panel]
        yield _table([panel or "option", "", "default"], rows)
    if below:
        links = [[f"[`{name} {each}`](#{'-'.join([*name.split(), each])})", _first(one)] for each, one in below.items()]
        yield _table(["command", ""], links)
    for each, inside in below.items():
        yield from _commands(inside, f"{name} {each}")


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _first(command: Any) -> str:
    """The first sentence of a command's help."""
    return _cell(_text(command.help or "").split(". ")[0].split("\n\n")[0].rstrip(".")) + "."


def _text(help_text: str) -> str:
    """Help as Markdown: bold words bold, the indented lines of examples as one block."""
    text = re.sub(r"\[(/?)bold\]", "**", help_text.strip())
    text = re.sub(r"(?m)^ {2,}(\S.*)\n\n(?= {2,}\S)", r"  \1\n", text)  # no empty line between two examples
    return re.sub(r"(?m)((?:^ {2,}\S.*\n?)+)", lambda found: f"```\n{_dedented(found[1])}\n```\n", text).rstrip()


def _dedented(lines: str) -> str:
    return "\n".join(line.strip() for line in lines.strip().splitlines())


def _row(option: Any, types: Mapping[str, Any]) -> list[str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    kind = "" if option.is_flag else f" {_kind(option, types[option.name])}"
    return [f"{names}{kind}", _help(types[option.name]), _default(option)]


def _kind(option: Any, annotation: Any) -> str:
    """What is to be given: the choices, or the kind of value."""
    listed = re.fullmatch(r"\[?(\w+(?:\|\w+)+)\]?", option.metavar or "")  # choices that are written out
    if listed:
        return _choices(listed[1].split("|"))
    if option.metavar:
        return f"`{option.metavar}`"
    kind = annotation
    while get_args(kind):  # list[str] | None is a text that may be given several times
        kind = next(inside for inside in get_args(kind) if inside is not NoneType)
    if issubclass(kind, Enum):
        return _choices([str(choice.value) for choice in kind])
    return WORDS[kind]


def _help(annotation: Any) -> str:
    """The help of a parameter, from where it is written: not all versions of typer keep that of arguments."""
    return _cell(next(about.help for about in annotation.__metadata__))


def _choices(names: Sequence[str]) -> str:
    return "one of " + ", ".join(f"`{name}`" for name in names)


def _default(option: Any) -> str:
    if option.required:
        return "required"
    value = getattr(option.default, "value", option.default)
    return "" if value in (None, False, ()) else f"`{value}`"


def _usage(argument: Any) -> str:
    name = _name(argument)
    name = name if argument.nargs == 1 or name.endswith("...") else f"{name}..."
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _is_hidden(part: Any) -> bool:
    return "--help" in part.opts or bool(getattr(part, "hidden", False))


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
