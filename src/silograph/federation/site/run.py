"""One run at a site: its study, its silo, its state, and the answer to each of its rounds."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.files import write_json, writing_folder
from silograph.errors import ProtocolError
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.data import Fingerprint, fingerprint, load_silo, stamp_of, version_of
from silograph.federation.site.settings import SiteSettings
from silograph.federation.site.state import LastAnswer, RunStore, forget_old
from silograph.federation.study_file import StudyFile
from silograph.graph.graph import graph_on
from silograph.methods.common.setup import build_setup, build_silo_method
from silograph.methods.common.setup_checks import ScalarsError
from silograph.protocol.checks import check_parts
from silograph.protocol.exchange import answer_task
from silograph.protocol.messages import PAIRS_NONNEGATIVE, Header, Task, Update, update_of
from silograph.protocol.method import Method
from silograph.protocol.silo import Silo, SiloState, restore_silo_state
from silograph.runs.writer import write_graphs

SETUP, LEARN = "setup", "learn"


@dataclass(slots=True, kw_only=True, eq=False)
class SiteRun:
    """A run that this process of the site takes part in."""

    run: str
    study: StudyFile
    nodes: tuple[str, ...]
    silos: tuple[str, ...]
    silo: Silo
    data: Path
    known: Fingerprint
    version: str  # of the table
    kept: RunStore
    last: LastAnswer | None = None
    state: SiloState[Any] = field(default_factory=SiloState)
    seconds: float = 0.0  # of computing the last answer, for the site's log

    def restore(self) -> None:
        """Go on from what the site has kept of this run."""
        found = self.kept.load()
        if found is not None:
            state, self.last = found
            self.state = restore_silo_state(state, self._method(self.last.stage, self.last.scalars).states.silo)

    def check_data(self) -> None:
        """Refuse once the file is no longer the one that the run began with."""
        try:
            if stamp_of(self.data) == self.known.stamp:
                return
            now = fingerprint(self.data)
        except OSError as error:
            raise Refused("data-changed", f"{self.data}: cannot be read any more ({error.strerror})") from error
        if now.sha256 != self.known.sha256:
            raise Refused("data-changed", f"{self.data}: has changed since run {self.run} began")
        self.known = now

    def last_answer_to(self, stage: str, scalars: Mapping[str, float], header: Header, digest: str) -> Update | None:
        """The answer given before, if just this was asked before; refuses another request for an answered round."""
        last = self.last
        if last is not None and (last.stage, stage) == (LEARN, SETUP):  # else round 1 of learning would be due again
            raise Refused("conflict", f"{stage}, round {header.round}: learning has begun")
        if last is not None and last.stage == stage == LEARN and dict(scalars) != dict(last.scalars):
            raise Refused("conflict", f"{stage}, round {header.round}: learning began with other parameters")
        if last is None or stage != last.stage or header.round > last.update.header.round:
            return None
        if digest != last.request_digest:
            raise Refused("conflict", f"{stage}, round {header.round}: was answered before, to another request")
        return last.update

    def method(self, stage: str, scalars: Mapping[str, float]) -> Method:
        """The method that is asked; refuses parameters to which the study and its set-up cannot lead."""
        if stage == LEARN and (self.last is None or self.last.stage == SETUP):  # later on, they are those of this round
            setup = build_setup(self.study.settings, self.silo.study_pairs)
            kept = self.state.own if self.state.method == setup.name else None
            with self._refusing():
                setup.check_scalars(kept, scalars, len(self.silos))
        return self._method(stage, scalars)

    def answer(
        self, method: Method, stage: str, scalars: Mapping[str, float], task: Task, digest: str, *, report: bool
    ) -> Update:
        """The silo's answer, written down."""
        began = time.perf_counter()
        with self._refusing():
            update, self.state = answer_task(method, self.silo, self.state, task, report=report)
        self.seconds = time.perf_counter() - began
        self.last = LastAnswer(stage=stage, scalars=scalars, request_digest=digest, update=update)
        self.kept.save(self.state, self.last)
        return update

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Wrong parameters end a run for ever: to try others and others would tell the silo's own terms bit by bit."""
        try:
            yield
        except ScalarsError as error:
            self.kept.end()
            raise Refused("parameters", str(error)) from error
        except ProtocolError as error:
            raise Refused("out-of-turn", str(error)) from error

    def _method(self, stage: str, scalars: Mapping[str, float]) -> Method:
        if stage == SETUP:
            return build_setup(self.study.settings, self.silo.study_pairs)
        return build_silo_method(self.study.settings, scalars, self.silo.study_pairs, len(self.silos))

    def finish(self, task: Task, results: Path) -> Update:
        """Write the site's own results: its graph, and the consensus that the coordinator sent."""
        w = self.state.graph
        if w is None:
            raise Refused("out-of-turn", "asked to finish a run that has not ended")
        expected = {"consensus": PAIRS_NONNEGATIVE}
        check_parts(task.parts, expected, pairs=self.silo.study_pairs, header=task.header, source="consensus")
        results.mkdir(parents=True, exist_ok=True)
        pairs = self.silo.study_pairs
        consensus = graph_on(pairs, task.vector("consensus"), self.nodes)
        own = graph_on(pairs, self.silo.spread(w), self.nodes, self.silo.nodes)
        with writing_folder(results / self.run, replace=True) as inside:
            for name, graph in (("own", own), ("consensus", consensus)):
                write_graphs(inside / name, graph)
            about: dict[str, Any] = {
                "run": self.run,
                "study": self.study.name,
                "sha256": self.study.sha256,
                "silos": self.silos,
            }
            about |= {"evidence": dict(self.state.evidence)}  # of the site's own graph, for its own people
            write_json(inside / "about.json", about)
        some = self.study.settings.missing_nodes == "allow"
        has = {"has": self.silo.spread(np.ones(w.size))} if some else {}
        return update_of(task.header, self.silo.name, {"graph": self.silo.spread(w), **has})


def open_site_run(
    folder: SiteFolder, settings: SiteSettings, run: str, study: StudyFile, nodes: Sequence[str], silos: Sequence[str]
) -> SiteRun:
    """Read the site's data for a run, and the state that the site keeps of it."""
    silo, known = load_silo(folder.path, settings, study, nodes)
    version = version_of(settings, known.sha256)
    about: dict[str, Any] = {
        "study": study.sha256,
        "silos": list(silos),
        "nodes": hashlib.sha256(json.dumps(list(nodes)).encode()).hexdigest(),
        "file": str(settings.data),
        "data": version,
    }
    kept = RunStore(folder, run, about=about)
    site_run = SiteRun(
        run=run,
        study=study,
        nodes=tuple(nodes),
        silos=tuple(silos),
        silo=silo,
        data=settings.data_in(folder.path),
        known=known,
        version=version,
        kept=kept,
    )
    try:
        forget_old(folder.state)
        site_run.restore()
    except BaseException:
        kept.close()
        raise
    return site_run
