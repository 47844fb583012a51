"""Parquet and Feather files through pyarrow (the extra `parquet`)."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.extras import required
from silograph.data.readers.checks import no_node
from silograph.data.readers.source import Chunk, Source, Wanted, refuse_key, rows_per_chunk
from silograph.errors import SignalError

Batches = Callable[[int, list[str]], Iterable[Any]]  # of so many rows, with these columns


def open_parquet(path: Path, *, wanted: Wanted, key: str | None, header: bool | None) -> Source:
    """A table whose columns are nodes; an index that pandas stored beside them is left out."""
    refuse_key(path, key)
    del header
    parquet = required("pyarrow.parquet", extra="parquet", purpose="to read Parquet files")
    with _opened(path, "Parquet", parquet.ParquetFile) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows

    def batches(rows: int, columns: list[str]) -> Iterator[Any]:
        with _opened(path, "Parquet", parquet.ParquetFile) as file:
            yield from file.iter_batches(batch_size=rows, columns=columns)

    return _source(path, schema, n_rows, wanted, batches)


def open_feather(path: Path, *, wanted: Wanted, key: str | None, header: bool | None) -> Source:
    """The same of a Feather file."""
    refuse_key(path, key)
    del header
    feather = required("pyarrow.feather", extra="parquet", purpose="to read Feather files")
    table = _opened(path, "Feather", feather.read_table)

    def batches(rows: int, columns: list[str]) -> list[Any]:
        read: Any = _opened(path, "Feather", lambda file: feather.read_table(file, columns=columns))
        return list(read.to_batches(max_chunksize=rows))

    return _source(path, table.schema, table.num_rows, wanted, batches)


def _opened(path: Path, kind: str, open_it: Callable[[str], Any]) -> Any:
    arrow = required("pyarrow", extra="parquet", purpose=f"to read {kind} files")
    try:
        return open_it(str(path))
    except (arrow.ArrowInvalid, OSError) as error:
        raise SignalError(f"{path.name}: not a {kind} file ({error}). Check how it was written.") from error


def _source(path: Path, schema: Any, n_rows: int, wanted: Wanted, batches: Batches) -> Source:
    arrow = required("pyarrow", extra="parquet", purpose="to read Parquet and Feather files")
    stored = [name for name in schema.names if not name.startswith("__index_level_")]
    keep, flag = wanted.choose(stored, source=path.name)
    names = tuple(stored[column] for column in keep)
    for name in names:
        kind = schema.field(name).type
        if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind)):
            raise SignalError(
                f"{path.name}, column {name!r}: expected numbers, got {kind}. Convert it. {no_node(name)}"
            )

    def chunks() -> Iterator[Chunk]:
        done = 0
        for batch in batches(rows_per_chunk(len(names)), [*names, *([] if flag is None else [stored[flag]])]):
            columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in names]
            flags = None if flag is None else batch.column(stored[flag]).to_numpy(zero_copy_only=False)
            done += batch.num_rows
            values = np.column_stack(columns)
            precision = np.float32 if values.dtype == np.float32 else np.float64  # twice the memory would say no more
            yield Chunk(values.astype(precision, copy=False), done / max(1, n_rows), flags)

    return Source(names, chunks)
