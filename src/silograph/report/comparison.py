"""A comparison as one page that needs nothing else: its pictures are drawn here, so that it has no script at all."""

from html import escape
from pathlib import Path

import numpy as np

from silograph._util.types import IntVector, Vector
from silograph.analysis.comparing.columns import LEVEL, Differences
from silograph.analysis.comparing.measures import MEASURES
from silograph.analysis.comparing.study import Comparison, how, incomparable
from silograph.report.coordinates import read_coordinates
from silograph.report.drawn import Lines, View, draw, views_of
from silograph.report.page import asset, fill_in, notice, style
from silograph.runs.comparison_files import ComparisonRecord

PAGE = "compare.html"
STRONGEST = 100  # edges of a mean graph, and differences, that are drawn: more hide each other
MOST_ROWS = 100
HEADS = ("difference", "effect", "95 % interval", "p", "q")


def comparison_page(told: Comparison, record: ComparisonRecord, *, coordinates: Path | None = None) -> str:
    """The whole page as text; `coordinates` is a CSV file with the columns name, x, y and perhaps z (MNI space)."""
    places = None if coordinates is None else read_coordinates(coordinates, told.pairs.names)
    views = views_of(told.pairs.graph(np.nan_to_num(told.pairs.values).mean(axis=0)), places)
    found, n_tested = len(told.differing), told.edges.n_tested
    whole = [] if incomparable(told) else [(name, k) for k, name in enumerate(MEASURES)]
    ranked = [pair for pair in told.ranked[:MOST_ROWS] if np.isfinite(told.edges.p[pair])]
    parts = {
        "{{style}}": style(),
        "{{title}}": escape(" and ".join(told.shown)),
        "{{subtitle}}": escape(_subtitle(told)),
        "{{badge}}": {0: "no pair differs" if n_tested else "nothing to compare", 1: "1 pair differs"}.get(
            found, f"{found} pairs differ"
        ),
        "{{finding}}": escape(told.sentences[0]),
        "{{says}}": escape(" ".join(told.sentences[1:])),
        "{{pictures}}": "\n".join(_pictures(told, view) for view in views),
        "{{first}}": escape(told.shown[0]),
        "{{second}}": escape(told.shown[1]),
        "{{likeness}}": escape(_likeness(told)),
        "{{graphs}}": _table(told, "number", told.graphs, whole),
        "{{edges_say}}": escape(_edges_say(told)),
        "{{edges}}": _table(told, "pair", told.edges, [(told.pair_name(k), k) for k in ranked]),
        "{{record}}": _record(told, record),
        "{{notice}}": notice() if any(view.outline for view in views) else "",
    }
    return fill_in(asset("compare.html"), parts)


def _subtitle(told: Comparison) -> str:
    counts = ", ".join(f"{name}: {n} silos" for name, n in zip(told.shown, told.design.counts, strict=True))
    return f"{counts}; {len(told.pairs.names)} nodes, {how(told)}"


def _pictures(told: Comparison, view: View) -> str:
    """Both mean graphs and the difference, from one side."""
    found, pairs = told.edges, told.pairs
    largest = float(np.nan_to_num([found.mean_first, found.mean_second]).max(initial=0.0))
    drawings = []
    for group, mean in zip(told.shown, (found.mean_first, found.mean_second), strict=True):
        lines = _lines(told, np.nan_to_num(mean), "soft", largest, _strongest(np.nan_to_num(mean)))
        drawings.append((f"{group}, mean graph", draw(view, pairs.names, lines)))
    size = np.where(np.isfinite(found.p), np.abs(np.nan_to_num(found.difference)), 0.0)
    surest = np.nan_to_num(np.minimum(np.abs(found.statistic), 1e6))
    top, drawn = float(size.max(initial=0.0)), _strongest(surest)
    sure = np.nan_to_num(found.p_family, nan=1.0) <= LEVEL
    lines = []
    for faint in (True, False):
        for kind, sign in (("red", 1), ("blue", -1)):
            some = drawn[(sure[drawn] != faint) & (np.sign(found.difference[drawn]) == sign)]
            lines += _lines(told, size, f"{kind} faint" if faint else kind, top, some)
    drawings.append((f"{told.shown[0]} − {told.shown[1]}", draw(view, pairs.names, lines)))
    figures = "".join(
        f"<figure><figcaption><strong>{escape(caption)}</strong> <span class='hint'>{view.name}</span></figcaption>"
        f"{svg}</figure>"
        for caption, svg in drawings
    )
    return f"<div class='triple'>{figures}</div>"


def _lines(told: Comparison, size: Vector, kind: str, largest: float, edges: IntVector) -> list[Lines]:
    pairs = told.pairs
    return [Lines(kind=kind, rows=pairs.rows[edges], cols=pairs.cols[edges], sizes=size[edges] / (largest or 1.0))]


def _strongest(sizes: Vector) -> IntVector:
    order = np.argsort(-sizes, kind="stable")[:STRONGEST]
    chosen: IntVector = order[sizes[order] > 0][::-1].astype(np.int32)
    return chosen


def _likeness(told: Comparison) -> str:
    alike, (first, second) = told.likeness, told.shown
    if (reason := incomparable(told)) is not None:
        return reason
    return (
        f"Overlap of two silos' graphs, on average: {alike.within_first:.3f} within {first}, "
        f"{alike.within_second:.3f} within {second}, {alike.between:.3f} between them. The group tells "
        f"{alike.explained:.1%} of what silos differ by (p = {alike.p:.3g})."
    )


def _edges_say(told: Comparison) -> str:
    if not told.edges.n_tested:
        return "No pair can be compared."
    shown = min(MOST_ROWS, told.edges.n_tested)
    rest = f"The {shown} surest of {told.edges.n_tested}; edges.csv has all. " if shown < told.edges.n_tested else ""
    return (
        f"{rest}Effect: the difference in units of the spread within groups (Hedges' g). Adjusted p: the chance that "
        "any pair would seem to differ so much if none did. q: the part of false ones among pairs with a q as small."
    )


def _table(told: Comparison, head: str, found: Differences, rows: list[tuple[str, int]]) -> str:
    if not rows:
        return ""
    heads = "".join(f"<th class='number'>{escape(name)}</th>" for name in ("adjusted p", *told.shown, *HEADS))
    body = "".join(_row(found, name, place) for name, place in rows)
    return f"<table><thead><tr><th>{head}</th>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _row(found: Differences, name: str, place: int) -> str:
    means = (found.mean_first, found.mean_second, found.difference)
    interval = f"{found.low[place]:.2f} to {found.high[place]:.2f}"
    cells = [f"{column[place]:.3g}" for column in (found.p_family, *means)] + [f"{found.effect[place]:.2f}", interval]
    cells += [f"{column[place]:.3g}" for column in (found.p, found.q)]  # what decides first: a phone shows four columns
    shown = "".join(f"<td class='number'>{'–' if 'nan' in cell else cell}</td>" for cell in cells)
    unsure = "" if np.nan_to_num(found.p_family[place], nan=1.0) <= LEVEL else " class='unsure'"
    return f"<tr{unsure}><td>{escape(name)}</td>{shown}</tr>"


def _record(told: Comparison, record: ComparisonRecord) -> str:
    asked = {name: value for name, value in record.settings.items() if value not in (None, (), [])}
    rows = [
        ("made", record.created.replace("T", " ").replace("+00:00", " UTC")),
        *((name, ", ".join(value) if isinstance(value, tuple) else str(value)) for name, value in asked.items()),
        ("relabellings", f"{record.relabellings} of {record.possible or 'very many'} that there are"),
        ("silos left out", str(len(record.left_out))),
        ("SHA-256 of the run", record.run_sha256),
        ("SHA-256 of the table", record.groups_sha256),
        *record.versions.items(),
    ]
    return "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
