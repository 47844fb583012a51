"""Conduct a run from where it is to its end: the coordinator's process calls this, on any transport."""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from silograph._util.kernel import telling_of_compiling
from silograph._util.locks import Lock
from silograph.engine.study import learn_on
from silograph.errors import SilographError, SilosError
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.masking import KeyExchange, plan_exchange
from silograph.federation.coordinator.orders import is_given_up, read_times
from silograph.federation.coordinator.quarantine import Quarantine
from silograph.federation.coordinator.request import Channel, RunDescription, SitesTroubleError, StoppedError, Transport
from silograph.federation.coordinator.results import write_results
from silograph.federation.coordinator.run import CoordinatorRun, Outcome
from silograph.federation.coordinator.sites import Sites
from silograph.federation.coordinator.witnesses import Witnesses
from silograph.federation.identity import Signer, Trust
from silograph.federation.keys import Terms
from silograph.federation.study_file import StudyFile, pairs_of
from silograph.graph.pairs import Pairs
from silograph.protocol.method import RoundRecord
from silograph.protocol.units import STANDARDISED

LOCK_SECONDS = 30.0  # for an earlier process of the same run to end


def run_attempt(
    run: CoordinatorRun,
    transport: Transport,
    *,
    attempt: str,
    signer: Signer,
    trust: Trust,
    stopped: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Go on with the run until it is done or cannot go on; how it ended is written down too."""
    lock = Lock(run.lock)
    if not lock.take(wait=LOCK_SECONDS):
        return Outcome(attempt=attempt, ended="failed", message="another process conducts this run")
    try:
        if (before := run.outcome()) is not None and before.ended == "done":
            return before  # a job of an earlier conductor's, that had waited in the engine's queue
        with History(run.history) as history:
            try:
                outcome = _go_on(run, transport, history, attempt=attempt, signer=signer, trust=trust, stopped=stopped)
            except SilographError as error:  # the study itself: its pairs may name nodes that are none
                outcome = Outcome(attempt=attempt, ended="failed", message=str(error))
        run.write_outcome(outcome)
    finally:
        lock.release()
    return outcome


def _go_on(
    run: CoordinatorRun,
    transport: Transport,
    history: History,
    *,
    attempt: str,
    signer: Signer,
    trust: Trust,
    stopped: Callable[[], bool],
) -> Outcome:
    study = run.study()
    pairs = pairs_of(study, run.nodes)
    channel = Channel(
        transport=transport,
        run=RunDescription(run_id=run.run_id, study=study.text.decode(), nodes=run.nodes, silos=run.sites),
        policy=study.policy,
        signer=signer,
        trust=trust,
        history=history,
        quarantine=Quarantine(run.quarantine),
        witnesses=Witnesses(run.federation.witnesses),
        stopped=lambda: stopped() or is_given_up(run),
    )
    largest_cost = _largest_cost(study)
    some = study.settings.may_lack_nodes
    keys = _plan_keys(run, study, pairs, trust) if study.settings.privacy.masked else None
    sites = Sites(
        channel, pairs, largest_cost=largest_cost, missing_nodes=some, keys=keys, groups=study.groups is not None
    )
    begun = run.checkpoint.exists()
    if not begun:
        history.forget_rounds()  # of an earlier generation, whose process was killed before it did
    history.add_event("resumed" if begun else "started", reason=attempt)
    try:
        _learn(run, sites, history)
    except SitesTroubleError as error:
        troubles = tuple(asdict(trouble) for trouble in error.troubles)
        return Outcome(attempt=attempt, ended="trouble", message=str(error), troubles=troubles)
    except StoppedError as error:
        return Outcome(attempt=attempt, ended="stopped", message=str(error))
    except SilographError as error:
        return Outcome(attempt=attempt, ended="failed", message=str(error))
    except Exception as error:  # a defect: it would happen again, so the run must not be tried for ever
        logging.getLogger(__name__).exception("run %s", run.name)
        return Outcome(attempt=attempt, ended="failed", message=f"{type(error).__name__}: {error}; see the log")
    finally:
        sites.close()
    history.add_event("finished")
    return Outcome(attempt=attempt, ended="done")


def _largest_cost(study: StudyFile) -> float:
    """The largest cost that a table can have, where it is known; noise comes on top, of which open sums have all."""
    privacy = study.settings.privacy
    if privacy.noisy:  # rows of bounded length, whatever they were scaled by before
        return 2 * privacy.longest_row**2 if privacy.masked else np.inf
    return STANDARDISED if study.scaled else np.inf


def _plan_keys(run: CoordinatorRun, study: StudyFile, pairs: Pairs, trust: Trust) -> KeyExchange:
    """How the sites of a masked study get each other's keys; raises, before anything is sent, for other sites."""
    if run.sites != study.sites:
        raise SilosError(
            f"sites: a masked sum is over all sites of the study ({', '.join(study.sites or ())}), the run has "
            f"{', '.join(run.sites)}. Start a new run."
        )
    terms = Terms.of(study, run.run_id, run.sites, run.nodes, pairs.size)
    return plan_exchange(study, terms, pairs.n_nodes, file=run.keys, trust=trust)


def _learn(run: CoordinatorRun, sites: Sites, history: History) -> None:
    def add_round(stage: str, record: RoundRecord) -> None:
        traffic = sites.traffic
        history.add_round(stage, record, seconds=traffic.seconds, bytes_down=traffic.down, bytes_up=traffic.up)

    sites.greet()
    study = run.study()

    def tell() -> None:
        history.add_event("compiling", reason="compiles, once; about 10 s")

    with telling_of_compiling(tell):
        learned = learn_on(sites, study.settings, run_id=run.run_id, checkpoint=run.checkpoint, on_round=add_round)
    known = {(each.stage, each.round) for each in history.rounds()}
    for record in learned.history:  # one may be missing after a crash between checkpoint and history
        if ("learn", record["round"]) not in known:
            history.add_round("learn", record, seconds=0.0, bytes_down=0, bytes_up=0)
    write_results(
        run,
        study,
        learned,
        sites.cohort.pairs,
        sites.n_silos,
        history,
        times=read_times(run, now=time.time()),
        per_group=sites.per_group,
    )
