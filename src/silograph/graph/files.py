"""Graphs on disk, by suffix: .graphml, .csv (edge list) and .npz; each reads back equal to what was written."""

import csv
import zipfile
import zlib
from collections.abc import Callable, Mapping
from itertools import repeat
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np

from silograph._util.extras import required
from silograph._util.files import writing
from silograph.errors import GraphError
from silograph.graph.graph import Graph

ARCHIVE = b"PK\x03\x04"  # how an .npz begins


def write_graph(graph: Graph, path: str | Path, columns: Mapping[str, np.ndarray] = MappingProxyType({})) -> None:
    """Write a graph as .graphml (Gephi, Cytoscape, igraph), .csv (source, target, weight) or .npz.

    `columns` are further numbers of each edge, by name: columns of a .csv, attributes of a .graphml.
    """
    path = Path(path)
    write = _by_suffix(path, {".graphml": _write_graphml, ".csv": _write_csv, ".npz": _write_npz})
    with writing(path) as temporary:
        write(graph, temporary, columns)


def read_graph(path: str | Path) -> Graph:
    """Read a graph that `write_graph` wrote, or a GraphML file or edge list of another tool."""
    path = Path(path)
    if not path.is_file():
        raise GraphError(f"{path}: no such file. Check the path.")
    read: Callable[[Path], Graph] = _by_suffix(path, {".graphml": _read_graphml, ".csv": _read_csv, ".npz": _read_npz})
    try:
        return read(path)
    except (KeyError, ValueError, TypeError, ParseError) as error:
        raise GraphError(f"{path}: not a graph file of this format ({error}). Write it anew.") from error


def _by_suffix(path: Path, choices: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    choice = choices.get(path.suffix.lower())
    if choice is None:
        raise GraphError(f"{path.name}: expected one of {', '.join(choices)}, got {path.suffix or 'no suffix'!r}.")
    return choice


def _networkx() -> Any:
    return required("networkx", extra="networkx", purpose="for GraphML")


def _write_graphml(graph: Graph, path: Path, columns: Mapping[str, np.ndarray]) -> None:
    made = graph.to_networkx()
    for (source, target, _), *values in zip(
        graph.edges(), *(column.tolist() for column in columns.values()), strict=True
    ):
        made.edges[source, target].update(zip(columns, values, strict=True))
    _networkx().write_graphml_xml(made, path)


def _read_graphml(path: Path) -> Graph:
    graph = _networkx().read_graphml(path)
    number = {name: node for node, name in enumerate(graph.nodes)}
    edges = [(number[i], number[j], data["weight"]) for i, j, data in graph.edges(data=True)]
    return _from_triples(list(number), edges)


def _write_csv(graph: Graph, path: Path, columns: Mapping[str, np.ndarray]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target", "weight", *columns])
        more = zip(*(column.tolist() for column in columns.values()), strict=True) if columns else repeat(())
        writer.writerows((*edge, *values) for edge, values in zip(graph.edges(), more, strict=False))
        # A node without edges has no other place in an edge list
        touched = set(graph.rows.tolist()) | set(graph.cols.tolist())
        writer.writerows(
            [name, "", "", *("" for _ in columns)] for node, name in enumerate(graph.names) if node not in touched
        )


def _read_csv(path: Path) -> Graph:
    number: dict[str, int] = {}
    edges: list[tuple[int, int, float]] = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        if not {"source", "target", "weight"} <= set(reader.fieldnames or ()):
            raise GraphError(f"{path.name}: expected the columns source, target, weight, got {reader.fieldnames}.")
        for row in reader:
            ends = [number.setdefault(name, len(number)) for name in (row["source"], row["target"]) if name]
            if len(ends) == 2:
                edges.append((ends[0], ends[1], float(row["weight"])))
    return _from_triples(list(number), edges)


def _write_npz(graph: Graph, path: Path, columns: Mapping[str, np.ndarray]) -> None:
    arrays = {
        "names": np.array(graph.names, dtype=str),
        "rows": graph.rows,
        "cols": graph.cols,
        "weights": graph.weights,
    }
    write_arrays(path, arrays)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """As numpy.savez_compressed, but without the time of day: the same arrays make the same bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """What `write_arrays` wrote; a ValueError says in what way a file is damaged, whatever its bytes are."""
    try:
        with path.open("rb") as file:  # NumPy may leave a damaged file open
            # Of a file that is no archive, NumPy says to load it unsafely
            if file.read(len(ARCHIVE)) != ARCHIVE:
                raise ValueError("it is no archive of arrays")
            file.seek(0)
            return dict(np.load(file, allow_pickle=False))
    except (OSError, EOFError, RuntimeError, MemoryError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"it is damaged: {error or type(error).__name__}") from error


def _read_npz(path: Path) -> Graph:
    data = read_arrays(path)
    return Graph.from_edges(data["names"].tolist(), data["rows"], data["cols"], data["weights"])


def _from_triples(names: list[str], edges: list[tuple[int, int, float]]) -> Graph:
    rows, cols, weights = zip(*edges, strict=True) if edges else ((), (), ())
    return Graph.from_edges(names, rows, cols, weights)
