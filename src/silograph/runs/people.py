"""A table of people: one row per silo, its name in one column, its group and whatever else is known in others."""

import csv
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from silograph._util.checks import list_names
from silograph._util.naming import setting
from silograph.analysis.comparing.design import is_gap
from silograph.errors import ParameterError, SilosError

Others = Literal["error", "ignore"]
SPREADSHEETS = (".xlsx", ".xls", ".ods")
SITE = "site"  # a column that silos have by their names, SITE/NAME, where the table has none


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The cells of a table as text."""

    source: str  # what errors call it
    key: str  # the column of names
    rows: tuple[Mapping[str, str], ...]
    lines: tuple[int, ...] = ()  # where each row begins, of a file

    @property
    def columns(self) -> list[str]:
        """All columns but the names."""
        return [name for name in (self.rows[0] if self.rows else ()) if name != self.key]

    def check_column(self, name: str, *, option: str) -> str:
        """The column's name; raises unless there is one."""
        if name not in self.columns:
            known = list_names(self.columns) or "none"
            raise ParameterError(f"{setting(option)}: expected a column of {self.source} ({known}), got {name!r}.")
        return name

    def group_column(self, name: str | None, *, option: str) -> str:
        """The column of groups: the one named, or the only one beside the names."""
        if name is not None:
            return self.check_column(name, option=option)
        if len(self.columns) != 1:
            raise ParameterError(
                f"{setting(option)}: expected one column of groups beside {self.key!r} in {self.source}, got "
                f"{list_names(self.columns) or 'none'}. Name it."
            )
        return self.columns[0]

    def rows_of(self, silos: Sequence[str], others: Others) -> list[Mapping[str, str]]:
        """The row of each silo; raises where one has none or two, and, unless told to ignore it, for rows of others."""
        names = [_composed(row[self.key].strip()) for row in self.rows]
        exact, lost = (_unique(silos, way) for way in (_composed, _no_zeros))
        found: dict[int, int] = {}
        strange = []
        for place, name in enumerate(names):
            silo = exact.get(name, lost.get(_no_zeros(name)))
            if silo is None:  # one without a site may be called by its site
                last = name.rpartition("/")[2]
                silo = exact.get(last, lost.get(_no_zeros(last)))
                silo = None if silo is None or "/" in silos[silo] else silo
            if silo is None:
                strange.append(name)
            elif silo in found:
                raise SilosError(
                    f"{self._at(found[silo], place)}: expected one row for each silo, got {names[found[silo]]!r} and "
                    f"{name!r} for {silos[silo]!r}. Remove one."
                )
            else:
                found[silo] = place
        almost = _almost(strange, silos)
        if strange and others == "error":
            raise SilosError(
                f"{self.source}: the run has no silo that is called {list_names(strange)}. It has {list_names(silos)}. "
                f"{almost}Correct column "
                f"{self.key!r}, or pass over rows of other people ({setting('others', 'ignore')})."
            )
        missing = [silo for number, silo in enumerate(silos) if number not in found]
        if missing:
            raise SilosError(
                f"{self.source}: expected a row for each silo, but {len(missing)} of {len(silos)} have none "
                f"({list_names(missing)}). {almost}Add them; name the column that holds the silos' names, if it is not "
                f"{self.key!r} ({setting('name')})."
            )
        return [self.rows[found[number]] for number in range(len(silos))]

    def _at(self, *places: int) -> str:
        return f"{self.source}, rows {' and '.join(str(self.lines[k]) for k in places)}" if self.lines else self.source


def _almost(strange: Sequence[str], silos: Sequence[str]) -> str:
    """What is nearly the name of a silo, and why it is not: the first of its kind, as the others are alike."""
    whole = {_composed(silo).casefold(): silo for silo in silos}
    last = {_composed(silo.rpartition("/")[2]).casefold(): silo for silo in silos}
    for name in strange:
        several = [silo for silo in silos if _no_zeros(silo.rpartition("/")[2]) == _no_zeros(name)]
        if len(several) > 1:
            return f"{name!r} may be any of {list_names(several)}: write the whole name. "
        if (silo := whole.get(name.casefold(), last.get(name.casefold()))) is not None:
            return f"{name!r} and {silo!r} differ in upper and lower case. "
    return ""


def _composed(name: str) -> str:
    """One spelling of accents: names of files on a Mac have them as characters of their own."""
    return unicodedata.normalize("NFC", name)


def _no_zeros(name: str) -> str:
    """A name without zeros in front, which tables of numbers lose."""
    site, slash, last = _composed(name).rpartition("/")
    return site + slash + (last.lstrip("0") or last[:1])


def _unique(silos: Sequence[str], way: Callable[[str], str]) -> dict[str, int]:
    """The silos by their whole names, and by the part after the site where that is of one alone."""
    whole, last = [way(silo) for silo in silos], [way(silo.rpartition("/")[2]) for silo in silos]
    counts, taken = Counter(last), Counter(whole)
    short = {name: number for number, name in enumerate(last) if counts[name] == 1}
    return short | {name: number for number, name in enumerate(whole) if taken[name] == 1}


def read_people(path: str | os.PathLike[str], *, key: str | None = None) -> People:
    """Read a table of people: CSV with commas or semicolons, or TSV; the names are in the first column, or in `key`.

    Excel's first line `sep=;` is understood.
    """
    path = Path(path)
    if path.suffix.lower() in SPREADSHEETS:
        raise SilosError(f"{path.name}: expected CSV or TSV, got a spreadsheet. Save it as CSV UTF-8.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            file.seek(0)
            lines = list(_filled(csv.reader(file, delimiter=_delimiter(path, head), skipinitialspace=True), path))
    except UnicodeDecodeError as error:
        raise SilosError(f"{path}: expected a table of people in UTF-8, got others. Save it as CSV UTF-8.") from error
    except OSError as error:
        raise SilosError(f"{path}: cannot be read as a table of people ({error}). Check the path.") from error
    if _is_separator(head):
        del lines[0]
    if not lines:
        raise SilosError(f"{path.name}: expected the names of columns and a row for each silo, got nothing.")
    width = len(lines[0].cells)
    for line in lines:
        if len(line.cells) != width:
            runs_on = f" It goes on to row {line.end}: is a quote open?" if line.end > line.begin else ""
            raise SilosError(
                f"{path.name}, row {line.begin}: expected {width} cells, got {len(line.cells)}.{runs_on} "
                "Correct the row."
            )
    used = [k for k, cells in enumerate(zip(*(line.cells for line in lines), strict=True)) if any(cells)]
    names, *rows = ([line.cells[k].strip() for k in used] for line in lines)
    if len(names) == 1:
        between = "tabs" if path.suffix.lower() == ".tsv" else "commas, semicolons or tabs"
        raise SilosError(
            f"{path.name}: expected a column of names and one of groups, got one column, {names[0]!r}. Between cells "
            f"{between} are expected, and quotes around a cell, not around a row."
        )
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise SilosError(f"{path.name}: expected columns with different names, got {list_names(twice)}.")
    known = [dict(zip(names, row, strict=True)) for row in rows]
    return _people(path.name, known, names, key, lines=[line.begin for line in lines[1:]])


def people_of(groups: Mapping[str, Any], *, column: str = "group") -> People:
    """The same of Python's own: silo → group, or silo → what is known of it by column."""
    rows = []
    for silo, value in groups.items():
        known = value if isinstance(value, Mapping) else {column: value}
        rows.append({"silo": str(silo)} | {str(name): "" if one is None else str(one) for name, one in known.items()})
    if len({tuple(row) for row in rows}) > 1:
        raise SilosError("groups: expected the same columns for each silo.")
    return _people("groups", rows, list(rows[0]) if rows else [], None)


def _people(
    source: str, rows: Sequence[Mapping[str, str]], names: Sequence[str], key: str | None, lines: Iterable[int] = ()
) -> People:
    if not rows:
        raise SilosError(f"{source}: expected one row for each silo, got none.")
    if key is not None and key not in names:
        raise ParameterError(f"{setting('name')}: expected a column of {source} ({list_names(names)}), got {key!r}.")
    if key is None and names[0] == "":
        raise ParameterError(
            f"{setting('name')}: the first column of {source} has no name, as one that numbers the rows. Name the "
            f"column that holds the silos' names ({list_names(names[1:])}), or give the first a name."
        )
    key = names[0] if key is None else key
    numbers = tuple(lines)
    for place, row in enumerate(rows):
        if is_gap(row[key]):
            here = f"{source}, row {numbers[place]}" if numbers else source
            raise SilosError(f"{here}: expected a name in column {key!r}, got {row[key]!r}. Fill it in.")
    return People(source=source, key=key, rows=tuple(rows), lines=numbers)


@dataclass(frozen=True, slots=True)
class _Line:
    """A row of a table, which may be on several lines of the file."""

    begin: int
    end: int
    cells: list[str]


def _filled(reader: Any, path: Path) -> Iterator[_Line]:
    """The rows that are not empty."""
    begin = 1
    try:
        for cells in reader:
            if any(cells):
                yield _Line(begin, reader.line_num, cells)
            begin = reader.line_num + 1
    except csv.Error as error:
        raise SilosError(
            f"{path.name}, row {begin}: cannot be read ({error}). Correct the row, where a quote may be open."
        ) from error


def _is_separator(head: str) -> bool:
    return head[:4].lower() == "sep=" and len(head.strip()) <= len("sep=;")


def _delimiter(path: Path, head: str) -> str:
    if _is_separator(head) and head[4:].strip("\r\n"):
        return head[4]
    if path.suffix.lower() == ".tsv":
        return "\t"
    return max(",;\t", key=head.count)
