"""Where nodes lie: a CSV file with the columns name, x, y and perhaps z (then it is a brain, in MNI millimetres)."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from silograph._util.checks import list_names
from silograph._util.types import Matrix
from silograph.errors import SignalError


def read_coordinates(path: Path, names: Sequence[str]) -> Matrix:
    """The nodes' places, (nodes, 2) or (nodes, 3), in the order of `names`; rows of other nodes are not needed."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = [column for column in ("x", "y", "z") if column in (reader.fieldnames or ())]
            if "name" not in (reader.fieldnames or ()) or columns[:2] != ["x", "y"]:
                got = ", ".join(map(str, reader.fieldnames or ["none"]))
                raise SignalError(f"{path.name}: expected the columns name, x, y and perhaps z, got {got}.")
            places = _rows(reader, columns, path.name)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SignalError(f"{path}: cannot be read ({error}). Check the path.") from error
    missing = [name for name in names if name not in places]
    if missing:
        raise SignalError(
            f"{path.name}: expected a row for each of {len(names)} nodes, but {len(missing)} have none "
            f"({list_names(missing)}). Add them, by the names of the tables' columns."
        )
    return np.array([places[name] for name in names])


def _rows(reader: "csv.DictReader[str]", columns: Sequence[str], file: str) -> dict[str, list[float]]:
    places: dict[str, list[float]] = {}
    for row in reader:
        name = row["name"]
        if name in places:
            raise SignalError(f"{file}, row {reader.line_num}: {name!r} has a row already. Give each node once.")
        places[name] = [_number(row[column], f"{file}, row {reader.line_num}, column {column!r}") for column in columns]
    return places


def _number(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SignalError(f"{where}: expected a finite number, got {text!r}. Every node needs a place.")
    return value
