"""From files to a run: read the tables, learn, and write the folder; or go on with a run that was stopped."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.naming import setting
from silograph.analysis.choosing import Telling, learn_study
from silograph.analysis.newcomers import LeftOut, leave_out, rows_to_halve
from silograph.analysis.scores import StudyScores, has_scores, scores_of
from silograph.analysis.stability import StudyStability, study_stability, table_stability
from silograph.analysis.tables import doubts_about_tables
from silograph.engine.noise import with_min_samples
from silograph.engine.study import StudyResult
from silograph.errors import CheckpointError, OutputError, ParameterError, SilographError
from silograph.local.large import learn_large
from silograph.local.learn import LearnResult, Settings, learn
from silograph.local.scores import pair_scores
from silograph.methods.common.settings import StudySettings
from silograph.protocol.method import RoundRecord
from silograph.protocol.silo import Silo
from silograph.runs.consensus import fixed_consensus
from silograph.runs.layout import RunLayout
from silograph.runs.newcomer import learn_newcomer, make_newcomer, resume_newcomer
from silograph.runs.reader import RunData, read_run
from silograph.runs.reading import OnProgress, Tables, read_tables
from silograph.runs.request import LearnRequest, make_request, read_request
from silograph.runs.results import RunContext, study_run, table_run, with_signs, with_stability
from silograph.runs.signs import learn_signs
from silograph.runs.stability import PairScores, RunStability, fit_a_file
from silograph.runs.writer import abandon_run, begin_run, check_output, finish_run, tidy

HALVES = "halves"  # folder of finished half-samples in a run's checkpoint
PathLike = str | os.PathLike[str]


def learn_files(
    paths: PathLike | Sequence[PathLike] = (),
    *,
    out: PathLike | None = None,
    consensus: PathLike | None = None,
    resume: PathLike | None = None,
    force: bool = False,
    on_progress: OnProgress = lambda what, part: None,
    **settings: Any,
) -> RunData:
    """Learn from tables on disk, as `silograph learn` does, and return the run.

    One table: its graph. Several are silos: a graph of each, and their consensus. A path may be a file, a pattern, or a
    folder: a site, whose tables are silos called SITE/NAME.

    `consensus` is the folder of a finished run over several silos: the one table is then a newcomer, whose graph is
    learned beside that consensus as it is, and the run's record tells how unusual it is (`newcomer`).

    `out` is a folder to write the run to, whole or not at all; `force` replaces an earlier run there. `resume` is the
    folder of a run that was stopped, by whatever and wherever it was begun: it goes on as if it had not stopped, and a
    finished one is only read. `on_progress` is called with what is going on and the part of it that is done, or None.

    Settings go by name: degree, alpha, beta, tol, zeta, solver; of one table also what `SmoothGraph` has (max_iter,
    neighbours), of several what `ConsensusGraph` has (method, coupling, sparsity, nu, lam, rounds, pull, options and
    those of gradient steps, whole) and noise (epsilon, delta, unit, rows, collusion, masked, min_samples, public); of
    reading standardize, transform, missing, missing_nodes, keep_rows, drop, key, header, precomputed, allow, forbid; of
    half-samples stability (how many), stable and quorum; and newcomers, so that newcomers can be compared with silos.

    The run has its `record`, `consensus_graph`, `graphs` by silo, `history`, `converged`, `warnings` worth telling, and
    `folder`.
    """
    given = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    if resume is not None:
        if given or settings or force or out is not None or consensus is not None:
            raise ParameterError("resume: the run knows its tables and its options. Give neither.")
        return resume_run(Path(resume), on_progress)
    newcomer = None if consensus is None else make_newcomer(given, Path(consensus), settings)
    request = None if newcomer is not None else make_request(given, settings)
    if out is not None:
        check_output(Path(out), force=force)
    elif force:
        where = setting("out")
        raise ParameterError(f"{setting('force', True)}: there is nothing to replace. Name the folder ({where}).")
    folder = None if out is None else Path(out)
    if newcomer is not None:
        return learn_newcomer(newcomer, folder, on_progress)
    assert request is not None
    return _learn(request, folder, on_progress)


def resume_run(folder: Path, on_progress: OnProgress) -> RunData:
    """Go on with the run in a folder; one that is finished is only read."""
    if RunLayout(folder).is_finished:
        tidy(folder)
        return read_run(folder)
    if "newcomer" in RunLayout(folder).read_request():
        return resume_newcomer(folder, on_progress)
    request, checksums = read_request(folder)
    return _learn(request, folder, on_progress, resumed=checksums)


def _learn(
    request: LearnRequest, out: Path | None, on_progress: OnProgress, *, resumed: Sequence[str] | None = None
) -> RunData:
    """Read, learn and write; `resumed` are the checksums that the tables of a run to resume had."""
    started = time.perf_counter()
    tables = read_tables(request, on_progress)
    if resumed is not None:
        _check_same([one.path for one in request.found], tables.checksums, resumed)

    def begin() -> None:
        if out is not None and resumed is None:
            begin_run(out, request.as_data(tables.checksums))

    def context() -> RunContext:
        return RunContext(
            nodes=tables.nodes,
            sources=tables.sources,
            options=request.options(),
            folder=out,
            resumed=resumed is not None,
            seconds=time.perf_counter() - started,
            doubts=doubts_about_tables(tables.facts, standardize=request.tables.scaled),
        )

    if isinstance(request.settings, Settings):
        on_progress(f"Learning {len(tables.nodes)} nodes", None)
        if tables.tiles is not None:
            learned = learn_large(tables.tiles, request.settings)
        else:
            learned = learn(tables.silos[0].cost, tables.silos[0].pairs, request.settings)
        run = _with_table(table_run(learned, request.settings, context()), learned, tables, request, on_progress)
        begin()  # not before: there are no rounds to resume from, so that who interrupts it has nothing to clear away
    else:
        begin()
        done = _learn_silos(tables.silos, request, out, on_progress, resumed=resumed is not None)
        study, stability = done.study, done.stability
        settings = with_min_samples(request.settings, tables.silos)
        run = study_run(study, settings, tables.pairs, context())
        fixed = fixed_consensus(
            study,
            settings,
            tables.pairs,
            nodes=tables.nodes,
            silos=dict.fromkeys(tables.sources, 1),
            options=request.options(),
            left_out=done.left_out,
            rows=rows_to_halve(tables.silos),
        )
        run = replace(run, fixed=fixed)
        if has_scores(settings) and fit_a_file(tables.pairs, len(tables.silos)):
            scores = scores_of(tables.silos, settings, study)
            run = replace(run, scores=PairScores(names=tables.nodes, pairs=tables.pairs, study=scores))
        if stability is not None:
            run = _with_stability(run, stability, tables, request)
    if tables.moments:
        on_progress("Looking at signs", None)
        run = _with_signs(run, tables)
    if out is not None:
        finish_run(out, run)
    return run


def _with_signs(run: RunData, tables: Tables) -> RunData:
    found = learn_signs(tables.moments, tables.nodes)
    return run if found is None else with_signs(run, *found)


def _with_stability(run: RunData, study: StudyStability, tables: Tables, request: LearnRequest) -> RunData:
    asked, told = request.asked, RunStability(names=tables.nodes, pairs=tables.pairs, study=study)
    return with_stability(run, told, threshold=asked.threshold, graphs=asked.stable is not None, quorum=asked.quorum)


def _with_table(
    run: RunData, learned: LearnResult, tables: Tables, request: LearnRequest, on_progress: OnProgress
) -> RunData:
    """The run over one table with scores and, if asked for, stability."""
    if not learned.whole or tables.tiles is not None:
        if request.asked.stability:
            raise ParameterError("stability: half-samples of so many nodes are not kept. Leave it out.")
        return run
    if request.settings.solver == "newton" and fit_a_file(tables.pairs, 0):
        found = pair_scores(learned.problem, learned.solution.w, learned.y)
        scores = StudyScores(consensus=found, silos={})
        run = replace(run, scores=PairScores(names=tables.nodes, pairs=tables.pairs, study=scores))
    if request.asked.stability:
        told = table_stability(tables.silos[0], learned.problem, request.asked.stability, on_progress=on_progress)
        run = _with_stability(run, told, tables, request)
    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    study: StudyResult
    stability: StudyStability | None = None
    left_out: tuple[LeftOut, ...] = ()


def _learn_silos(
    silos: Sequence[Silo], request: LearnRequest, out: Path | None, on_progress: OnProgress, *, resumed: bool
) -> _Done:
    def tell(stage: str, record: RoundRecord) -> None:
        gap = record.get("gap", np.nan)
        so_far = f", certified gap {gap:.1e}" if np.isfinite(gap) else ""
        what = "Set-up" if stage == "setup" else f"Round {record['round']}"
        on_progress(f"{what} of {len(silos)} silos{so_far}", None)

    on_progress(f"Learning {len(silos)} silos", None)
    try:
        checkpoint, settings = None if out is None else RunLayout(out).checkpoint, request.settings
        assert isinstance(settings, StudySettings)
        telling = Telling(round=tell, progress=on_progress)
        study = learn_study(silos, settings, checkpoint=checkpoint, whole=request.asked.whole, telling=telling)
        done = _Done(study=study)
        if request.asked.newcomers:
            done = replace(done, left_out=leave_out(silos, settings, study, on_progress=on_progress))
        if request.asked.stability:
            kept = None if checkpoint is None else checkpoint / HALVES
            told = study_stability(silos, settings, study, request.asked.stability, kept=kept, on_progress=on_progress)
            done = replace(done, stability=told)
        return done
    except SilographError as error:
        # It would fail again; only a full disk may be emptied
        if out is not None and not resumed and not isinstance(error, OutputError):
            abandon_run(out)
        raise


def _check_same(paths: Sequence[Path], now: Sequence[str], then: Sequence[str]) -> None:
    for path, checksum, known in zip(paths, now, then, strict=True):
        if checksum != known:
            raise CheckpointError(
                f"{path}: has changed since the run began, so the run cannot go on. Bring the old file back, or "
                "start a new run."
            )
