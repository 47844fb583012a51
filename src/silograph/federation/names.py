"""Names in a federation: what a site, a study, a federation or a node may be called, and lists of names.

One rule holds for a site wherever it is named, so that a study can name every site that was invited.
"""

import csv
import re
import secrets
import unicodedata
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import IO

from silograph._util.documents import show
from silograph.errors import ParameterError

LONGEST_NAME = 200  # characters
OWN_NAMES = ("server", "lead", "conductor")  # sites would take the messages of one called so for the server's
SITE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")  # becomes a certificate's name and a folder's, on any file system
FEDERATION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")  # a folder's, and a part of certificates
RUN_NAME = re.compile(r"[0-9a-f]{16}")  # of a run's folder at the coordinator, as `new_run_name` makes it
RUN_ID = re.compile(RUN_NAME.pattern + r"\.[1-9][0-9]{0,8}")  # with its generation: of its folders at a site
STUDY_NAME = re.compile(r"[^\W_][\w .-]{0,79}")  # no slash: a study's name may become a folder's
UNSEEN_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control, direction, half and line-breaking characters
TABLE_SUFFIXES = {".csv", ".tsv"}


def check_site_name(name: object) -> None:
    """Raise unless a site may be called so."""
    if isinstance(name, str) and name.lower() in OWN_NAMES:
        raise ParameterError(f"A site cannot be called {name.lower()!r}: that is a part of the coordinator's.")
    if not (isinstance(name, str) and SITE_NAME.fullmatch(name)):
        raise ParameterError(
            f"site name: expected at most 40 of a-z, 0-9 and '-', the first no '-', got {show(name)}. Rename it."
        )


def check_federation_name(name: str) -> None:
    """Raise unless a federation may be called so."""
    if not FEDERATION_NAME.fullmatch(name):
        raise ParameterError(
            "the federation's name: expected up to 63 letters, digits, '-' and '_', beginning with a letter or digit, "
            f"got {show(name)}. Rename it."
        )


def new_run_name() -> str:
    """A name that no other run has."""
    return secrets.token_hex(8)


def study_name_of(value: object, where: str) -> str:
    """A study's name."""
    name = name_of(value, where)
    if not STUDY_NAME.fullmatch(name):
        raise ParameterError(
            f"{where}: expected a letter or digit, then at most 79 of letters, digits, spaces, '.', '-' and '_', "
            f"got {show(name)}. Rename the study."
        )
    return name


def names_of(value: object, where: str, *, least: int) -> tuple[str, ...]:
    """The names in a list, each once."""
    if not isinstance(value, list | tuple):
        raise ParameterError(f'{where}: expected a list of names, ["a", "b"], got {show(value)}.')
    return _distinct([(f"{where}, entry {number}", name) for number, name in enumerate(value, 1)], where, least=least)


def _distinct(entries: Iterable[tuple[str, object]], where: str, *, least: int) -> tuple[str, ...]:
    """The names of the entries, each of which comes with its place."""
    names: dict[str, None] = {}
    for place, value in entries:
        name = name_of(value, place)
        if name in names:
            raise ParameterError(f"{place}: expected each name once, got {name!r} again. Rename or drop it.")
        names[name] = None
    if len(names) < least:
        raise ParameterError(f"{where}: expected names, {least} at least, got {len(names)}. Add some.")
    return tuple(names)


def name_of(value: object, where: str) -> str:
    """A name that people can read, write and tell from others."""
    if not isinstance(value, str):
        raise ParameterError(f"{where}: expected a name in quotes, got {show(value)}.")
    if not value.strip():
        raise ParameterError(f"{where}: expected a name, got an empty one. Give it one, or drop it.")
    if len(value) > LONGEST_NAME:
        raise ParameterError(f"{where}: expected at most {LONGEST_NAME} characters, got {len(value)}. Shorten it.")
    if value != value.strip() or any(unicodedata.category(letter) in UNSEEN_CATEGORIES for letter in value):
        raise ParameterError(
            f"{where}: expected a name without tabs, line breaks, unseen characters and outer spaces, "
            f"got {show(value)}. Remove them."
        )
    return value


def read_nodes(path: Path) -> tuple[str, ...]:
    """The node list in a file: a name per line, or the first row of a table."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _distinct(
                _table_names(file, path) if path.suffix.lower() in TABLE_SUFFIXES else _listed_names(file, path),
                str(path),
                least=2,
            )
    except OSError as error:
        raise ParameterError(
            f"{path}: the list of nodes cannot be read ({error.strerror}). Put it beside the study, or correct nodes."
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ParameterError(f"{path}: expected UTF-8 text, got another file ({error}). Save it as UTF-8.") from error


def _listed_names(file: IO[str], path: Path) -> list[tuple[str, object]]:
    lines = ((number, line.strip()) for number, line in enumerate(file, start=1))
    return [(f"{path}, line {number}", line) for number, line in lines if line and not line.startswith("#")]


def _table_names(file: IO[str], path: Path) -> list[tuple[str, object]]:
    """The cells of a table's first row; the rest, which may be large, is not read."""
    first = next((line for line in file if line.strip() and not line.startswith("#")), "")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
    cells = [cell.strip() for cell in next(csv.reader(chain([first], file), delimiter=delimiter), [])]
    numbered = list(enumerate(cells, start=1))
    if len(cells) > 1 and not cells[0]:  # row labels, as everywhere in silograph
        numbered = numbered[1:]
    if len(cells) > 1 and not cells[-1]:  # a delimiter at the end of the line
        numbered = numbered[:-1]
    if numbered and all(_is_fraction(cell) for _, cell in numbered):
        raise ParameterError(f"{path}: expected names in the first row, got numbers ({cells[0]}, …). Add such a row.")
    return [(f"{path}, column {number}", cell) for number, cell in numbered]


def _is_fraction(cell: str) -> bool:
    """Whether it is a number and no label: atlases number their regions, but not by fractions."""
    return re.fullmatch(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?", cell) is not None
