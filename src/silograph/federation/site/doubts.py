"""What is doubtful of a site's own tables, for its own people: shown before they approve a study, and never sent."""

from collections.abc import Sequence
from pathlib import Path

from silograph.analysis.doubts import Doubt, list_remarks
from silograph.analysis.tables import TableFacts, doubts_about_tables, facts_of
from silograph.data.alignment import all_nodes, order_of
from silograph.data.costs import TableOptions, read_costs
from silograph.data.readers import Signals
from silograph.federation.study_file import StudyFile, pairs_of


def doubts_at_home(
    tables: Sequence[tuple[str, Path, Signals]], study: StudyFile, options: TableOptions
) -> tuple[Doubt, ...]:
    """The doubts about tables (name, path, opened) that this study would be answered for."""
    nodes = study.nodes or all_nodes(signals.names for _, _, signals in tables)
    pairs, some, facts = pairs_of(study, nodes), study.settings.missing_nodes, []
    for name, path, signals in tables:
        order = order_of(nodes, signals.names, first="the study", silo=name, missing_nodes=some)
        read = read_costs(path, signals, pairs, options, order=order, missing_nodes=some, on_progress=lambda part: None)
        facts.append(facts_of(name, len(nodes), read))
    found = doubts_about_tables(facts, standardize=study.standardize)
    outside = _outside(facts, study)
    return found if outside is None else (outside, *found)


def _outside(facts: Sequence[TableFacts], study: StudyFile) -> Doubt | None:
    if study.scale is None:
        return None
    low, high = study.scale
    out = {one.name: f"{one.scale:.3g}" for one in facts if one.scale is not None and not low <= one.scale <= high}
    if not out:
        return None
    text = (
        f"Mean squared differences are outside the study's range ({low:g} to {high:g}): {list_remarks(out)}. Your site "
        "will refuse. Convert to the study's units, or ask for another range."
    )
    return Doubt("range", tuple(out), text)
