"""What the page is given: plain data, as large as the page may become and no larger.

Everything that is text on the page comes from here, and the page shows it as text. Weights keep all their digits, so
that the table that a reader downloads is the run's own.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from silograph.analysis.graphs import own_part
from silograph.analysis.overlap import overlaps
from silograph.graph.graph import Graph
from silograph.privacy.settings import OPEN
from silograph.report.evidence import agreed_edges, coupling_of, edge_columns, halves_of, stability_of, stable_from
from silograph.report.layout import Layout
from silograph.report.measures import MOST_SILOS, absent_nodes, drawn_silos, first_threshold, shares
from silograph.report.newcomer import newcomer_of
from silograph.report.reading import counted, doubts, reading, scientific
from silograph.runs.layout import EDGES, RunLayout
from silograph.runs.reader import RunData
from silograph.runs.record import SiloRecord, finite

MOST_EDGES_IN_PAGE = 150_000  # of all graphs together; with more, the page is slow to open and to send
MOST_FLUID_NODES = 500  # up to which all are drawn
MOST_DRAWN, FEWER_DRAWN = 3000, 1000  # edges at once in a drawing, of up to MOST_FLUID_NODES nodes and of more
PLACE_DIGITS = 4  # of places in the unit square

Rows = list[tuple[str, str]]
TIMES = {  # of a federation's run
    "computing": "computing",
    "starting": "starting processes",
    "approval": "waiting for approvals",
    "sites": "waiting for sites",
    "server": "waiting for the server",
    "turn": "waiting for its turn",
    "total": "in all",
}


def payload(run: RunData, layout: Layout, *, title: str, spatial: str | None = None) -> dict[str, Any]:
    """The page's data; `spatial` is the name of a file with a view in space."""
    federation, drawn = run.record.federation, drawn_silos(run)
    graphs = {name: run.graphs[name] for name in drawn if name in run.graphs}
    alike = overlaps([*graphs.values(), run.main], [absent_nodes(run, name) for name in (*graphs, "")])
    return {
        "title": title,
        "subtitle": _subtitle(run),
        "verdict": _verdict(run),
        "doubts": list(run.warnings.values()),
        "reading": [
            {"question": answer.question, "sentences": answer.sentences}
            for answer in reading(run, layout.community, alike)
        ],
        "nodes": run.names,
        "graphs": _graphs(run, graphs),
        "silos": _silos(run, drawn),
        "kept": [silo.name for silo in run.silos if not silo.graph_shared],
        "layout": _layout(layout),
        "order": layout.order.tolist(),
        "community": layout.community.tolist(),
        "threshold": first_threshold(run),
        "degree": run.result.degree_asked,
        "drawn": MOST_DRAWN if len(run.names) <= MOST_FLUID_NODES else FEWER_DRAWN,
        "fluid": MOST_FLUID_NODES,
        "similarity": {"names": [*graphs, "consensus"], "values": np.round(alike, 4).tolist()} if graphs else None,
        "convergence": _convergence(run),
        "stability": stability_of(run),
        "stableFrom": stable_from(run),
        "coupling": coupling_of(run),
        "isNewcomer": run.record.newcomer is not None,
        "newcomer": newcomer_of(run),
        "spatial": spatial,
        "record": [
            {"title": "Run", "rows": _run_rows(run)},
            {"title": "Parameters", "rows": _parameter_rows(run)},
            {"title": "Federation", "rows": _plain_rows({} if federation is None else asdict(federation))},
            {"title": "Versions", "rows": _plain_rows(run.record.versions)},
            {"title": "Inputs (SHA-256)", "rows": _checksums(run)},
        ],
    }


def _graphs(run: RunData, graphs: Mapping[str, Graph]) -> list[dict[str, Any]]:
    every = {"consensus" if run.silos else "graph": run.main, **graphs}
    most = MOST_EDGES_IN_PAGE // len(every)
    out, layout = [], RunLayout(Path())
    for number, (name, graph) in enumerate(every.items()):
        main = number == 0
        here = layout.folder if not run.silos else layout.consensus if main else layout.silo(name)
        about = {"name": name, "main": main, "file": (here / EDGES).as_posix()}
        out.append({**about, "absent": [] if main else absent_nodes(run, name)})
        silo = None if main else name
        out[-1] |= _edges(graph, most, edge_columns(run, silo, graph), agreed_edges(run, silo, graph))
    return out


def _edges(graph: Graph, most: int, columns: Mapping[str, np.ndarray], agreed: np.ndarray | None) -> dict[str, Any]:
    """The strongest edges, in the order of the run's own table, and what else it has of them."""
    kept = np.sort(np.argsort(-graph.weights, kind="stable")[:most])
    return {
        "rows": graph.rows[kept].tolist(),
        "cols": graph.cols[kept].tolist(),
        "weights": graph.weights[kept].tolist(),
        "columns": {name: values[kept].tolist() for name, values in columns.items()},
        "agreed": None if agreed is None else agreed[kept].tolist(),
        "total": graph.n_edges,
    }


def _silos(run: RunData, drawn: Collection[str]) -> list[dict[str, Any]]:
    part, shown = shares(run.silos), set(drawn)
    return [
        _silo(run, silo, None if part is None else float(part[number])) | {"drawn": silo.name in shown}
        for number, silo in enumerate(run.silos)
    ]


def _silo(run: RunData, silo: SiloRecord, share: float | None) -> dict[str, Any]:
    graph = run.graphs.get(silo.name)
    return {
        "name": silo.name,
        "site": silo.site,
        "silos": silo.n_silos,
        "missing": silo.missing_nodes,
        "dropped": silo.rows_dropped,
        "samples": silo.n_samples,
        "edges": silo.edges,
        "stable": silo.stable_edges,
        "own": None if graph is None else round(own_part(graph, run.main), 4),
        "contribution": None if silo.is_consensus else silo.contribution,
        "fused": silo.is_consensus,
        "share": share,
        "here": graph is not None,
    }


def _layout(layout: Layout) -> dict[str, Any]:
    says = {
        "coordinates": "Nodes lie where the coordinates given say.",
        "main": "Nodes that are strongly connected lie near each other; places mean nothing else.",
        "silos": "The consensus connects few nodes, so places follow all graphs together; they mean nothing else.",
    }
    return {
        "places": np.round(layout.places, PLACE_DIGITS).tolist(),
        "space": None if layout.space is None else np.round(layout.space, 2).tolist(),
        "says": says[layout.source],
    }


def _convergence(run: RunData) -> dict[str, Any] | None:
    rounds = [
        {"round": row["round"], "gap": finite(row.get("gap")), "moved": finite(row.get("moved"))} for row in run.history
    ]
    if not rounds:
        return None
    return {"rounds": rounds, "tolerance": run.parameters["tol"], "certified": run.result.converged is not None}


def _subtitle(run: RunData) -> str:
    if not run.silos:
        source = run.record.silos[0]
        samples = "" if source.n_samples is None else f", {counted(source.n_samples, 'sample')}"
        return f"{PurePath(source.file or source.name).name}: {len(run.names)} nodes{samples}"
    told = [silo.n_samples for silo in run.silos if silo.n_samples is not None]
    total = f", {sum(told)} samples" if len(told) == len(run.silos) else ""
    if run.record.newcomer is not None:
        return f"{run.silos[0].name}, a newcomer: {len(run.names)} nodes{total}, method {run.parameters['method']}"
    method = run.parameters["method"]
    if len(run.silos) == 1 and run.silos[0].n_silos is None:  # at a site with one table
        return f"{run.silos[0].name}, one silo of several: {len(run.names)} nodes{total}, method {method}"
    n_silos, sites = sum(silo.n_silos or 1 for silo in run.silos), {silo.site for silo in run.silos} - {None}
    n_sites = len(run.silos) if n_silos > len(run.silos) else len(sites)  # sites that answered with sums
    silos = counted(n_silos, "silo") + (f" of {counted(n_sites, 'site')}" if n_sites else "")
    return f"{silos}, {len(run.names)} nodes{total}, method {method}"


def _verdict(run: RunData) -> dict[str, Any]:
    gap, converged = run.result.relative_gap, run.result.converged
    doubted = f"; {counted(len(doubts(run)), 'doubt')} about the data, see below" if doubts(run) else ""
    if converged is None:
        return {"good": False if doubted else None, "text": f"no certificate{doubted}"}
    size = "infinite" if gap is None else "below 10⁻¹⁵" if gap < 1e-15 else scientific(gap)
    text = f"certified gap {size}" + ("" if converged else ", tolerance not met") + doubted
    return {"good": converged and not doubted, "text": text}


def _run_rows(run: RunData) -> Rows:
    result = run.result
    rows: Rows = [
        ("made", run.record.created.replace("T", " ").replace("+00:00", " UTC")),
        ("nodes", str(len(run.names))),
    ]
    if run.silos:
        rows += [("silos", str(len(run.silos))), ("method", str(run.parameters["method"]))]
        rows += [("edges of the consensus", str(result.edges))]
        if (newcomer := run.record.newcomer) is not None:
            rows += [("beside the consensus of", f"{len(newcomer.silos)} silos ({newcomer.consensus})")]
            rows += [("its consensus.json, SHA-256", newcomer.sha256)]
        else:
            before = "" if result.setup_rounds is None else f" (and {result.setup_rounds} of set-up)"
            rows += [("rounds", f"{result.rounds}{before}")]
    else:
        rows += [("edges", str(result.edges)), ("solver", str(run.parameters.get("solver", "not told")))]
        rows += [("iterations", str(result.iterations))]
    if result.degree_asked is not None:
        reached = "" if result.degree_reached else ", not reached"
        rows.append(("degree asked for", f"{result.degree_asked:g}{reached}"))
    if result.optimum_degree is not None:
        rows.append(("degree of the whole optimum", f"{result.optimum_degree:.4g}"))
    if (told := run.record.stability) is not None:
        rows.append(("half-samples", f"{told.half_samples}, each with {halves_of(run)}"))
        if told.stable_edges is not None:
            rows.append((f"edges in at least {told.threshold:.0%} of them", f"{told.stable_edges} of {told.edges}"))
    if (promise := run.record.privacy) is not None:
        numbers = f"ε = {promise.epsilon:g}, δ = {promise.delta:g} for a {promise.unit}"
        rows += [
            ("noise", f"{numbers}; σ₁ = {promise.multiplier:.4g}, ρ = {promise.rho:.4g}"),
            ("promise", promise.says),
        ]
    if run.record.newcomer is None:
        rows.append(("objective", "not finite" if result.objective is None else f"{result.objective:.8g}"))
    rows += [("certificate", str(_verdict(run)["text"]))]
    if (about := run.record.federation) is None:
        return rows if result.seconds is None else [*rows, ("seconds", f"{result.seconds:g}")]
    times = asdict(about.times)  # over all attempts
    return [*rows, *((f"seconds, {TIMES[name]}", f"{times[name]:g}") for name in TIMES if times[name])]


def _parameter_rows(run: RunData) -> Rows:
    """What was found, then what was asked for, without what was left at nothing."""
    found = ("alpha", "beta", "coupling", "sparsity", "nu", "lam", "rho")
    rows = [(name, f"{value:.6g}") for name in found if (value := getattr(run.result, name)) is not None]
    asked = {name: value for name, value in run.parameters.items() if name not in (*found, "method")}
    privacy, usual = asked.get("privacy") or {}, asdict(OPEN)
    asked["privacy"] = {name: value for name, value in privacy.items() if value != usual.get(name)}
    return rows + [row for row in _plain_rows(asked) if row[1] not in ("none", "no")]


def _plain_rows(values: Mapping[str, Any]) -> Rows:
    return [(str(name).replace("_", " "), _format(value)) for name, value in values.items()]


def _format(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_format(inner)}" for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_format, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _checksums(run: RunData) -> Rows:
    rows = [(PurePath(silo.file).name, silo.sha256) for silo in run.record.silos if silo.file and silo.sha256]
    return rows if len(rows) <= MOST_SILOS else [*rows[:MOST_SILOS], (f"{len(rows) - MOST_SILOS} more", "in run.json")]
