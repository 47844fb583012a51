"""The page about the command line, from the saved measurements alone."""

from __future__ import annotations

from benchmarks.report import Page, Table, durations, machine_lines
from benchmarks.start.catalogue import Command
from benchmarks.suite import Record

HOW_TO_READ = (
    "Each run is a fresh process, with a folder of its own for compiled loops (NUMBA_CACHE_DIR): empty, or filled by a "
    "run before. Processor time is user and system of that process; median (least to most)."
)


def page(report: Record) -> Page:
    """The table and what it says in a line each."""
    records = report["start"]
    tables = records[0]["tables"]
    learned = f"{tables['silos']} tables of {tables['nodes']} nodes and {tables['samples']} rows"
    rows = [
        [
            str(Command(**one["case"])),
            durations(one["seconds"]),
            durations(one["wall_seconds"]),
            str(len(one["seconds"])),
        ]
        for one in records
    ]
    return Page(
        title="The command line: what a start costs",
        introduction=machine_lines(report, f"{report['machine']['cpu_count']} cores"),
        how_to_read=HOW_TO_READ,
        tables=[
            Table(
                title=f"Learning from {learned}", header=["command", "processor time", "wall clock", "runs"], rows=rows
            )
        ],
        claims=[f"{Command(**one['case'])}: {durations(one['seconds'])} of processor time" for one in records],
    )
