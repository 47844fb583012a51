"""An outcome as files: tables as Markdown, CSV and JSON, figures as SVG and PNG, each whole or not at all."""

import csv
import io
import json
import math
from pathlib import Path

from silograph._util.files import make_folder, write_text
from silograph.experiments.outcome import Number, Outcome, Picture, Table

FIELDS = ("block", "row", "column", "ours", "standard error", "paper", "difference")
LARGE = 10.0


def write_outcome(outcome: Outcome, folder: Path) -> list[Path]:
    """Write everything into the folder; the paths written."""
    make_folder(folder)
    written = []
    for table in outcome.tables:
        written += [write_text(folder / f"{table.name}.md", markdown(table)), *_write_numbers(table, folder)]
    for picture in outcome.pictures:
        from silograph.report.drawing import save

        written += save(picture.figure, folder, picture.name)
        written.append(write_text(folder / f"{picture.name}.md", _markdown_of(picture)))
        if picture.data is not None:
            written += _write_numbers(picture.data, folder)
    written += [write_text(folder / f"{page.name}.md", f"# {page.title}\n\n{page.text}") for page in outcome.pages]
    return written


def markdown(table: Table) -> str:
    """The table for people."""
    lines = [f"# {table.title}", ""]
    for block in table.blocks:
        lines += [*([f"**{block}**", ""] if block else []), *_block(table, block), ""]
    lines += [f"{note}\n" for note in table.notes]
    return "\n".join(lines).rstrip() + "\n"


def _block(table: Table, block: str) -> list[str]:
    columns = table.columns(block)
    printed = {number.column for number in table.numbers if number.block == block and number.paper is not None}
    head = ["", *(name for c in columns for name in ((c, "paper", "difference") if c in printed else (c,)))]
    lines = [_line(head), _line(["---"] + ["--:"] * (len(head) - 1))]
    for row in table.rows(block):
        cells = [row]
        for column in columns:
            number = table.number(block, row, column)
            cells.append(format_number(number, table.digits))
            if column in printed:
                cells += ["", ""] if number is None else list(format_printed(number, table.digits))
        lines.append(_line(cells))
    return lines


def format_number(number: Number | None, digits: int) -> str:
    """Our number with its standard error."""
    if number is None:
        return ""
    digits = _digits(number, digits)
    error = "" if number.error is None else f" ± {number.error:.{digits}f}"
    return f"{number.ours:.{digits}f}{error}".replace("-", "\N{MINUS SIGN}")


def format_printed(number: Number, digits: int) -> tuple[str, str]:
    """The paper's number and the difference."""
    if number.paper is None or number.difference is None:
        return "", ""
    digits = _digits(number, digits)
    return f"{number.paper:.{digits}f}", f"{number.difference:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _digits(number: Number, digits: int) -> int:
    """Fewer digits after the point for large numbers."""
    size = abs(number.ours)
    return digits if size < 1 else min(digits, 3) if size < LARGE else 1


def _markdown_of(picture: Picture) -> str:
    return f"# {picture.title}\n\n![{picture.title}]({picture.name}.svg)\n\n{picture.caption}\n"


def _write_numbers(table: Table, folder: Path) -> list[Path]:
    records = [(n.block, n.row, n.column, n.ours, n.error, n.paper, n.difference) for n in table.numbers]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows(records)
    record = {
        "name": table.name,
        "title": table.title,
        "notes": list(table.notes),
        "numbers": [dict(zip(FIELDS, map(_in_json, values), strict=True)) for values in records],
    }
    as_json = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return [
        write_text(folder / f"{table.name}.csv", text.getvalue()),
        write_text(folder / f"{table.name}.json", as_json),
    ]


def _in_json(value: str | float | None) -> str | float | None:
    """JSON has no word for NaN and infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
