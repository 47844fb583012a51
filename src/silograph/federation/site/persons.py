"""How many rows, and how many tables, one person has at most: by a column of the site's tables that names persons.

Noise protects a row, or a table. Who has m of them is protected m times less, which costs m² times as much (budget.py).
The column is no node. What it says is counted once for each version of the data, and not kept.

    ledger/VERSION.persons    the column, and the two numbers
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from silograph._util.documents import parse_json
from silograph._util.files import write_bytes
from silograph.data.costs import TableOptions
from silograph.data.folders import FoundTable
from silograph.data.readers.flags import kept_rows
from silograph.errors import SignalError
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.data import SiteData
from silograph.federation.site.settings import SiteSettings
from silograph.federation.study_file import StudyFile


@dataclass(frozen=True, slots=True, kw_only=True)
class MostOfOne:
    """What one person has at most."""

    rows: int = 1
    tables: int = 1


def units_of_one(folder: SiteFolder, settings: SiteSettings, data: SiteData, study: StudyFile) -> int:
    """How many of the units that the study's noise is meant for are one person's; 1 where no column names persons."""
    privacy = study.settings.privacy
    if settings.person is None or not privacy.noisy:
        return 1
    most = most_of_one(folder, settings.person, data)
    return most.rows if privacy.unit == "row" else most.tables


def most_of_one(folder: SiteFolder, column: str, data: SiteData) -> MostOfOne:
    """As the tables have it now; they are read once for each version."""
    path = folder.ledger / f"{data.version}.persons"
    if path.exists() and (kept := parse_json(path.read_bytes()))["column"] == column:
        return MostOfOne(rows=kept["rows"], tables=kept["tables"])
    try:
        found = _count(column, data)
    except SignalError as error:
        raise Refused("data", f"{data.place}: {error}") from error
    data.check_unchanged()
    folder.ledger.mkdir(exist_ok=True, mode=0o700)
    write_bytes(path, json.dumps({"column": column, "rows": found.rows, "tables": found.tables}).encode())
    return found


def _count(column: str, data: SiteData) -> MostOfOne:
    rows, tables = Counter[str](), Counter[str]()
    for table in data.tables:
        here = Counter(_persons(table, column, data.options))
        rows.update(here)
        tables.update(here.keys())
    return MostOfOne(rows=max(rows.values(), default=1), tables=max(tables.values(), default=1))


def _persons(table: FoundTable, column: str, options: TableOptions) -> Iterator[str]:
    """Whose each row is that counts."""
    names, kept = _cells(table, column, options), np.ones(0, dtype=np.bool_)
    if options.keep_rows is not None:
        flags = _cells(table, options.keep_rows, options)
        kept = kept_rows(flags, column=options.keep_rows, source=table.path.name, row_name=lambda row: row + 1)
    for number, cell in enumerate(names.tolist()):
        if kept.size and not kept[number]:
            continue
        person = str(cell).strip()
        if cell is None or cell != cell or not person:
            raise SignalError(
                f"{table.path.name}, sample {number + 1}, column {column!r}: expected whose row it is, got nothing. "
                "Fill it, or leave [table] person out of site.toml."
            )
        yield person


def _cells(table: FoundTable, column: str, options: TableOptions) -> np.ndarray:
    """A column that is no node, whole: it is read as one that says which rows count."""
    others = () if options.keep_rows is None else (options.keep_rows,)
    try:
        signals, _ = replace(options, keep_rows=column, drop=(*options.drop, *others)).open_some(table.path)
    except SignalError as error:  # the table was opened before, without asking for this column
        raise SignalError(
            f"{table.path.name}: no column is called {column!r}. Correct [table] person in site.toml, or add one."
        ) from error
    return np.concatenate([np.asarray(cells, dtype=object) for cells in signals.flags()])
