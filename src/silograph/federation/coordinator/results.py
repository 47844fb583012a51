"""What a federation's run ends with: the same folder that `silograph learn` writes."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from silograph._util.files import writing_folder
from silograph.analysis.comparing.sums import GroupSums
from silograph.analysis.doubts import Doubt
from silograph.analysis.tables import TableFacts, doubts_about_tables
from silograph.engine.study import StudyResult
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.run import CoordinatorRun
from silograph.federation.groups import SIDES, square_step
from silograph.federation.study_file import StudyFile
from silograph.graph.pairs import Pairs
from silograph.protocol.messages import Total
from silograph.runs.consensus import fixed_consensus
from silograph.runs.layout import RunLayout
from silograph.runs.record import FederationRecord, TimesRecord, finite
from silograph.runs.results import RunContext, study_run
from silograph.runs.sums_comparison import write_sums_comparison
from silograph.runs.writer import write_results as write_run


def write_results(
    run: CoordinatorRun,
    study: StudyFile,
    learned: StudyResult,
    pairs: Pairs,
    n_silos: Mapping[str, int],
    history: History,
    *,
    times: TimesRecord,
    per_group: Total | None = None,
) -> None:
    """Write graphs, history and record, and the comparison of groups, if there is one: whole or not at all."""
    context = RunContext(
        nodes=run.nodes,
        sources={site: _source(learned.reported.get(site, {}), n_silos[site]) for site in run.sites},
        options={"standardize": study.standardize, "transform": study.transform},
        folder=run.results,
        resumed=any(event.kind == "resumed" for event in history.events()),
        seconds=times.computing,
        federation=_federation(run, study, history, times),
        doubts=_doubts(run, study, learned),
    )
    with writing_folder(run.results, replace=True) as inside:
        fixed = fixed_consensus(
            learned,
            study.settings,
            pairs,
            nodes=run.nodes,
            silos={site: n_silos[site] for site in run.sites},
            options={**context.options, "missing": study.missing},
        )
        write_run(inside, replace(study_run(learned, study.settings, pairs, context), fixed=fixed))
        if per_group is not None and study.groups is not None:
            step = square_step({"alpha": learned.alpha, "beta": learned.beta})
            first, second = (_sums_of(per_group, side, step) for side in SIDES)
            place, sha = RunLayout(inside).compare, study.sha256
            write_sums_comparison(place, study.groups, (first, second), pairs, run.nodes, study_sha256=sha)


def _sums_of(per_group: Total, side: str, step: float) -> GroupSums:
    count = int(per_group.number(f"count_{side}"))
    total, squares = (per_group.vector(f"{name}_{side}") for name in ("sum", "squares"))
    return GroupSums(count=count, total=total, squares=squares, step=step)


def _federation(run: CoordinatorRun, study: StudyFile, history: History, times: TimesRecord) -> FederationRecord:
    rounds, events = history.rounds(), history.events()
    return FederationRecord(
        run=run.name,
        study=study.name,
        study_sha256=study.sha256,
        policy=asdict(study.policy),
        left_out=dict(run.left_out),
        attempts=sum(event.kind in ("started", "resumed") for event in events),
        times=times,
        rejected_answers=sum(event.kind == "rejected" and event.file is not None for event in events),
        bytes_down=sum(one.bytes_down for one in rounds),
        bytes_up=sum(one.bytes_up for one in rounds),
    )


def _source(reported: Mapping[str, float], n_silos: int) -> dict[str, Any]:
    samples = finite(reported.get("samples"))
    return {
        "n_samples": None if samples is None else int(samples),
        "mean_squared_difference": finite(reported.get("scale")),
        "n_silos": n_silos if n_silos > 1 else None,
    }


def _doubts(run: CoordinatorRun, study: StudyFile, learned: StudyResult) -> tuple[Doubt, ...]:
    """What is doubtful by what sites told of their tables."""
    told = {site: _source(learned.reported.get(site, {}), 1) for site in run.sites}
    facts = [
        TableFacts(
            name=site, n_nodes=len(run.nodes), n_samples=known["n_samples"], scale=known["mean_squared_difference"]
        )
        for site, known in told.items()
    ]
    return doubts_about_tables(facts, standardize=study.scaled)
