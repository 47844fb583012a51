"""Parquet files, batch by batch, through pyarrow (the extra `parquet`)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from silograph._util.extras import required
from silograph._util.types import Matrix
from silograph.data.readers.source import Source, kept_columns, refuse_key, rows_per_chunk
from silograph.errors import SignalError


def open_parquet(path: Path, *, drop: Sequence[str], key: str | None, header: bool | None) -> Source:
    """A table whose columns are nodes; an index that pandas stored beside them is left out."""
    refuse_key(path, key)
    del header
    parquet = required("pyarrow.parquet", extra="parquet", purpose="to read Parquet files")
    arrow = required("pyarrow", extra="parquet", purpose="to read Parquet files")
    try:
        file = parquet.ParquetFile(path)
    except (arrow.ArrowInvalid, OSError) as error:
        raise SignalError(f"{path.name}: not a Parquet file ({error}). Check how it was written.") from error
    schema = file.schema_arrow
    stored = [name for name in schema.names if not name.startswith("__index_level_")]
    names = tuple(stored[column] for column in kept_columns(stored, drop, source=path.name))
    for name in names:
        kind = schema.field(name).type
        if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind)):
            raise SignalError(
                f"{path.name}, column {name!r}: expected numbers, got {kind}. "
                "Drop the column (drop=, or --drop), or convert it."
            )
    total = max(1, file.metadata.num_rows)

    def chunks() -> Iterator[tuple[Matrix, float]]:
        done = 0
        for batch in file.iter_batches(batch_size=rows_per_chunk(len(names)), columns=list(names)):
            columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in names]
            done += batch.num_rows
            yield np.column_stack(columns).astype(np.float64, copy=False), done / total

    return Source(names, chunks)
