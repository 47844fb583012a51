"""Molène: hourly temperatures at weather stations of Brittany in January 2014."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from silograph._util.types import Matrix
from silograph.datasets.archives import ANEW, numbers, read_npz
from silograph.datasets.locate import MOLENE, locate
from silograph.errors import DataError, ParameterError
from silograph.graph.pairs import default_names

Variable = Literal["temperature", "highest", "lowest"]
VARIABLES: tuple[Variable, ...] = ("temperature", "highest", "lowest")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Molene:
    """One variable at every station and hour."""

    signals: Matrix  # (744 hours, 37 stations), in kelvin
    coordinates: Matrix  # (stations, 2), as in the file
    names: tuple[str, ...]  # of the stations


def load_molene(path: str | Path | None = None, variable: Variable = "temperature") -> Molene:
    """Read Molène from an .npz file (default: from the folder `$SILOGRAPH_DATA`).

    The file has `T` (3 variables, stations, hours), `coords` (stations, 2) and perhaps `names`; without names, stations
    are called 0, 1, 2, …. The variables are the temperature, and the highest and the lowest within the hour.
    """
    if variable not in VARIABLES:
        raise ParameterError(f"variable: expected {' or '.join(map(repr, VARIABLES))}, got {variable!r}.")
    place = locate(MOLENE, path)
    arrays = read_npz(place, ("T", "coords"))
    values = numbers(arrays["T"], (len(VARIABLES), None, None), what=f"{place}, T")
    n_stations = values.shape[1]
    coordinates = numbers(arrays["coords"], (n_stations, 2), what=f"{place}, coords")
    names = tuple(map(str, np.ravel(arrays["names"]))) if "names" in arrays else default_names(n_stations)
    if len(set(names)) != n_stations or len(names) != n_stations:
        raise DataError(f"{place}, names: expected {n_stations} different names, got {len(names)}. {ANEW}")
    signals = np.ascontiguousarray(values[VARIABLES.index(variable)].T)
    return Molene(signals=signals, coordinates=coordinates, names=names)
