"""Who is of which group: a table at the site, one row per table of signals. What it says stays here.

The labels belong to the version of the data. Sums per group would otherwise give away the graph of a patient whose
label has changed, as the difference of two answers for what seems to be the same data.
"""

from collections.abc import Sequence
from pathlib import Path

from silograph.analysis.comparing.design import is_gap
from silograph.data.folders import FoundTable
from silograph.errors import SilographError
from silograph.federation.refusals import Refused
from silograph.federation.site.settings import SiteSettings
from silograph.runs.people import read_people


def read_labels(settings: SiteSettings, folder: Path, tables: Sequence[FoundTable]) -> tuple[str, ...] | None:
    """The label of each table, an empty one where the cell is; nothing where site.toml names no table of groups."""
    if settings.groups is None:
        return None
    try:
        people = read_people(folder / settings.groups)
        column = people.group_column(settings.groups_column, option="groups_column")
        rows = people.rows_of([table.name for table in tables], "ignore")
    except SilographError as error:
        raise Refused("groups", str(error)) from error
    cells = [row[column].strip() for row in rows]
    return tuple("" if is_gap(cell) else cell for cell in cells)
