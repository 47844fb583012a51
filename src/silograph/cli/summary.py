"""What is said of a run at its end: a table of what was learned, and notes. Doubts are the record's own warnings."""

from pathlib import Path, PurePath

from rich.console import Group
from rich.table import Table
from rich.text import Text

from silograph._util.checks import MOST_NAMED
from silograph.cli.output import span
from silograph.privacy.statement import Statement
from silograph.runs.layout import RESULT_NAMES
from silograph.runs.record import NewcomerRecord, ResultRecord, RunRecord, SiloRecord

MOST_NEGATIVE = 3  # pairs that are told here; the record has more
MOST_ROWS = 10  # half of the silos that the summary shows: the first and the last


def summary(record: RunRecord, out: Path | None) -> Group:
    """The table that ends a run, and what is to be said of all silos together."""
    if record.kind == "table":
        return Group(_table(record, out), *(Text(fact) for fact in (*_stability(record), *_signs(record))))
    if record.newcomer is not None:
        return Group(_silos(record), *(Text(fact) for fact in _newcomer(record.newcomer, out)))
    facts = [*_facts(record, out), *_stability(record), *_signs(record), *_guarantee(record.privacy)]
    return Group(_silos(record), *(Text(fact) for fact in facts))


def notes_on(record: RunRecord, out: Path | None) -> list[str]:
    """What a user should look at twice."""
    notes, n_nodes = _left_out(record), record.result.nodes
    told = "scale" in record.warnings  # other units make it so, and no coupling cures them
    if (
        record.kind == "silos"
        and record.newcomer is None
        and record.result.edges in (0, n_nodes * (n_nodes - 1) // 2)
        and not told
    ):
        notes.append("The consensus is empty or complete: another --coupling or --sparsity may tell more.")
    if out is None:
        what = "graph" if record.kind == "table" else "graphs"
        notes.append(f"Nothing was written; keep the {what} with --out FOLDER.")
    return notes


def _left_out(record: RunRecord) -> list[str]:
    """Rows, cells and nodes that were not learned from."""
    rows = {_called(record, silo): silo.rows_dropped for silo in record.silos if silo.rows_dropped}
    nodes = {silo.name: len(silo.missing_nodes) for silo in record.silos if silo.missing_nodes}
    gaps = {_called(record, silo): silo.gaps for silo in record.silos if silo.gaps}
    told = (
        (rows, "Rows left out, for gaps or as --keep-rows says"),
        (gaps, "Cells empty, so that each pair of nodes rests on the rows that have both"),
        (nodes, "Nodes missing in silos, and learned from the others alone"),
    )
    return [f"{what}: {sum(some.values())} ({_listed(some)})." for some, what in told if some]


def _listed(counts: dict[str, int]) -> str:
    some = [f"{name}: {count}" for name, count in list(counts.items())[:MOST_NAMED]]
    return ", ".join(some) + (f" and {len(counts) - MOST_NAMED} more silos" if len(counts) > MOST_NAMED else "")


def _called(record: RunRecord, silo: SiloRecord) -> str:
    return PurePath(silo.file).name if record.kind == "table" and silo.file is not None else silo.name


def _table(record: RunRecord, out: Path | None) -> Table:
    result, silo = record.result, record.silos[0]
    table = Table(title=Text(f"Graph of {_called(record, silo)}"), show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    samples = "precomputed distances" if silo.n_samples is None else f"{silo.n_samples} samples"
    whose = "default" if record.parameters["degree"] is None else "asked"
    asked = "" if result.degree_asked is None else f" ({whose}: {result.degree_asked:g})"
    rows = {
        "nodes": f"{result.nodes} ({samples})",
        "edges": str(result.edges),
        "mean degree": f"{result.mean_degree:.2f}{asked}",
        "parameters": f"alpha = {result.alpha:.4g}, beta = {result.beta:.4g}",
        "certified gap": _certificate(result),
        "time": f"{result.seconds:.2f} s ({result.solves} solve{'' if result.solves == 1 else 's'})",
    }
    for name, value in rows.items():
        table.add_row(name, Text(value))
    if out is not None:
        table.add_row("written", Text(_written(out)))
    return table


def _silos(record: RunRecord) -> Table:
    result, silos = record.result, record.silos
    n_silos, sites = sum(silo.n_silos or 1 for silo in silos), {silo.site for silo in silos} - {None}
    n_sites = len(silos) if n_silos > len(silos) else len(sites)
    counted = f"{n_silos} silo{'' if n_silos == 1 else 's'}"
    counted += f" of {n_sites} site{'' if n_sites == 1 else 's'}" if n_sites else ""
    title = f"{counted}, {result.nodes} nodes, method {record.parameters['method']}"
    table = Table(title=Text(title), title_justify="left")
    pulled = any(silo.pull is not None for silo in silos)
    columns = ("silo", "samples", "edges", "degree", "contribution", *(("pull",) if pulled else ()))
    for name in columns:
        table.add_column(name, justify="left" if name == "silo" else "right")
    many = len(silos) > 2 * MOST_ROWS
    for number, silo in enumerate(silos[:MOST_ROWS] + silos[-MOST_ROWS:] if many else silos):
        if many and number == MOST_ROWS:
            table.add_row("…")
        table.add_row(*_silo_row(silo), *([f"{silo.pull:g}" if silo.pull is not None else ""] if pulled else []))
    table.add_section()
    table.add_row("consensus", "", str(result.edges), f"{2 * result.edges / result.nodes:.2f}", "")
    return table


def _silo_row(silo: SiloRecord) -> list[Text]:
    told = "not told" if silo.contribution is None else f"{silo.contribution:.3g}"
    samples = "–" if silo.n_samples is None else str(silo.n_samples)
    edges = "not told" if silo.edges is None else str(silo.edges)
    degree = "" if silo.mean_degree is None else f"{silo.mean_degree:.2f}"
    return [Text(part) for part in (silo.name, samples, edges, degree, "fused" if silo.is_consensus else told)]


def _facts(record: RunRecord, out: Path | None) -> list[str]:
    result = record.result
    parameters = f"parameters: alpha = {result.alpha:.4g}, beta = {result.beta:.4g}"
    if result.rho:
        nu = "inf" if result.nu is None else f"{result.nu:.4g}"
        parameters += f", nu = {nu}, lambda = {result.lam:.4g}"
    rounds = f"after {result.rounds} rounds (and {result.setup_rounds} of set-up)"
    facts = [parameters, f"certified gap: {_certificate(result)} {rounds}", f"time: {_time(record)}"]
    facts[:0] = [*_degree(result), *_coupling(result)]
    if out is not None:
        facts.append(f"written: {_written(out)}")
    return facts


def _time(record: RunRecord) -> str:
    """How long it took; between sites, also what was waited for, over all attempts."""
    if record.federation is None:
        return f"{record.result.seconds:.2f} s"
    times = record.federation.times
    waits = {"approvals": times.approval, "missing sites": times.sites, "the server": times.server, "turns": times.turn}
    named = ", ".join(f"{what} {span(seconds)}" for what, seconds in waits.items() if seconds >= 1)
    waited = f", {span(sum(waits.values()))} of waiting ({named})" if named else ""
    return (
        f"{span(times.computing)} of computing, {span(times.starting)} of starting{waited}; {span(times.total)} in all"
    )


def _written(out: Path) -> str:
    """What there is to open, by the order of RESULT_NAMES."""
    there = [out / name for name in RESULT_NAMES if (out / name).exists()]
    return f"{out}/: {', '.join(path.name + '/' * path.is_dir() for path in there)}"


def _degree(result: ResultRecord) -> list[str]:
    if result.optimum_degree is not None:
        more = f"the strongest edges of an optimum with {result.optimum_degree:.2f}"
        return [f"mean degree: {result.mean_degree:.2f} (aim: {result.degree_asked:g}); {more}"]
    if result.degree_alone is None:
        return []
    coupled = "; coupling adds weak edges, so rank edges by weight" if result.rho else ""
    return [f"mean degree of {result.degree_of}: {result.degree_alone:.2f} (aim: {result.degree_asked:g}){coupled}"]


def _coupling(result: ResultRecord) -> list[str]:
    if result.coupling is None:
        return []
    tried = len(result.coupling_curve)
    how = f", chosen by held-out rows among {tried} from 0 to {result.coupling_curve[-1].coupling:g}" if tried else ""
    return [f"coupling: {result.coupling:.3g}{how}"]


def _stability(record: RunRecord) -> list[str]:
    """Which edges to believe."""
    told = record.stability
    if told is None:
        return []
    whose = "edges" if record.kind == "table" else "consensus edges"
    halves = f"{told.half_samples} half-samples (of {told.of})"
    if told.stable_edges is None:
        return [f"stability: of each silo's own edges, by {halves}. {told.says}"]
    facts = [
        f"stability: {told.stable_edges} of {told.edges} {whose} were found in at least {told.threshold:.0%} of "
        f"{halves}. {told.says}"
    ]
    if told.quorum is not None:
        facts.append(f"quorum: {told.quorum_edges} edges are that stable in at least {told.quorum} silos")
    return facts


def _signs(record: RunRecord) -> list[str]:
    """Whether a model whose weights are ≥ 0 misses something."""
    told = record.signs
    if told is None or not told.smooth_is_wrong:
        return []
    some = [f"{one.source!r} – {one.target!r} ({one.value:.2f})" for one in told.negative[:MOST_NEGATIVE]]
    return [f"signs: {told.says}" + (f" The strongest negative pairs: {', '.join(some)}." if some else "")]


def _newcomer(told: NewcomerRecord, out: Path | None) -> list[str]:
    """How unusual a newcomer is."""
    alone = "" if told.alone_edges is None else f", {told.alone_edges} that no silo has either"
    facts = [
        f"beside: the consensus of {len(told.silos)} silos in {told.consensus}",
        f"edges of its own: {told.own_edges} that the consensus does not have{alone}",
        f"distance to the consensus: {told.distance:.3g}",
        told.says,
    ]
    if out is not None:
        facts.append(f"written: {_written(out)}")
    return facts


def _guarantee(privacy: Statement | None) -> list[str]:
    """What noise promises, and what it does not."""
    if privacy is None:
        return []
    whose = "a share of each silo" if privacy.masked else "all of it by each silo"
    numbers = f"ε = {privacy.epsilon:g}, δ = {privacy.delta:g} for a {privacy.unit}"
    return [f"noise: {numbers}; σ₁ = {privacy.multiplier:.4g}, ρ = {privacy.rho:.4g}; {whose}", privacy.says]


def _certificate(result: ResultRecord) -> str:
    gap = result.relative_gap
    if result.converged is None:
        return "none, as this method has none,"
    size = "infinite" if gap is None else "below 1e-15" if gap < 1e-15 else f"{gap:.1e}"
    return size if result.converged else f"{size} (tolerance not met)"
