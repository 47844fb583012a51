"""One run at a site: its study, its silos, their states, and the answer to each of its rounds."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.files import writing_folder
from silograph._util.types import BoolVector, Vector
from silograph.errors import ProtocolError, SilographError
from silograph.federation.folders import SiteFolder
from silograph.federation.identity import Signer, Trust
from silograph.federation.keys import Terms, digest_of_names
from silograph.federation.refusals import Refused
from silograph.federation.site.data import SiteData, fingerprint, stamps_of, tables_of
from silograph.federation.site.groups import Told, members_of, sum_groups
from silograph.federation.site.masking import Masking, restrict
from silograph.federation.site.noise import KeptNoise, NoiseKey, plan_at_site, protect_answer, protect_silos
from silograph.federation.site.results import OwnResults
from silograph.federation.site.settings import SiteSettings
from silograph.federation.site.silos import OwnSilos, load_silos
from silograph.federation.site.state import LastAnswer, RunStore, forget_old
from silograph.federation.study_file import StudyFile
from silograph.methods.common.presence import check_silo
from silograph.methods.common.setup import build_setup, build_silo_method
from silograph.methods.common.setup_checks import ScalarsError
from silograph.privacy.settings import LEAST_MASKED_SITES
from silograph.protocol.checks import check_parts
from silograph.protocol.group import SiloGroup
from silograph.protocol.messages import LIST, PAIRS_NONNEGATIVE, Task, Update, update_of
from silograph.protocol.method import Method
from silograph.protocol.sums import Subtotal, add_some
from silograph.runs.reading import source_of

SETUP, LEARN = "setup", "learn"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """What a request for a round says, and the digest of all of it."""

    stage: str
    scalars: Mapping[str, float]  # what set-up found; nothing before
    n_silos: int  # of all sites
    task: Task
    digest: str


@dataclass(slots=True, kw_only=True, eq=False)
class SiteRun:
    """A run that this process of the site takes part in."""

    run: str
    study: StudyFile
    nodes: tuple[str, ...]
    sites: tuple[str, ...]
    settings: SiteSettings
    folder: Path
    data: SiteData
    own: OwnSilos
    group: SiloGroup
    kept: RunStore
    last: LastAnswer | None = None
    masking: Masking | None = None  # of a masked study, once its key was asked for
    told: Told | None = None  # the sums per group, with which the run is over
    seconds: float = 0.0  # of computing the last answer, for the site's log

    def restore(self) -> None:
        """Go on from what the site has kept of this run."""
        found = self.kept.load()
        if found is not None:
            states, self.last = found
            if self.last.shown is not None:
                bits = np.frombuffer(bytes.fromhex(self.last.shown), dtype=np.uint8)
                self._leave_out_pairs(np.unpackbits(bits, count=self.group.pairs.size).astype(np.bool_))
            self.group.restore(self._method(self.last.stage, self.last.scalars, self.last.n_silos), states)
        self.told = self.kept.load_told()

    def check_data(self) -> None:
        """Refuse once the files are no longer those that the run began with, or others are there."""
        try:
            tables = tables_of(self.settings, self.folder)
            if stamps_of(tables) == self.data.known.stamps:
                return
            now = fingerprint(tables)
        except (OSError, SilographError) as error:
            raise Refused("data-changed", f"{self.data.place}: cannot be read any more ({error})") from error
        if now.sha256 != self.data.known.sha256:
            raise Refused("data-changed", f"{self.data.place}: has changed since run {self.run} began")
        self.data = replace(self.data, known=now)

    # --- the keys of a masked study -----------------------------------------------------------------------------------

    def key(self, signer: Signer) -> bytes:
        """The site's signed key for this run: the same as long as this process has the run."""
        if not self.study.settings.privacy.masked:
            raise Refused("malformed", f"study {self.study.sha256}: has no masked sum to make a key for")
        if self.masking is None:
            if self.last is not None:
                raise Refused("keys", f"run {self.run}: was answered by an earlier process, whose key is gone")
            terms = Terms.of(self.study, self.run, self.sites, self.nodes, self.group.pairs.size)
            least, has = LEAST_MASKED_SITES, None  # of two at a pair, each knows the other's term
            if self.study.settings.may_lack_nodes:  # else both are nobody's business
                least, has = max(self.settings.min_sites, least), self._own_pairs()
            data = self._noise.data_name(self._noise_key) if terms.noisy else b""
            self.masking = Masking(terms, site=self.settings.name, least=least, has=has, signer=signer, data=data)
        return self.masking.statement

    def take_keys(self, statements: bytes, trust: Trust) -> None:
        """Take all sites' keys, and leave out pairs that too few sites have."""
        if self.masking is None:
            raise Refused("keys", f"run {self.run}: this process has made no key for it")
        first = not self.masking.is_ready
        self.masking.accept(statements, trust)
        if first and self.masking.shown is not None:
            self._leave_out_pairs(self.masking.shown)

    def is_masked(self, stage: str) -> bool:
        """Whether answers of a stage are masked: all that depend on the data, which only set-up asks for."""
        return self.study.settings.privacy.masked and stage == SETUP

    def _own_pairs(self) -> BoolVector:
        """The pairs that any of the site's silos has."""
        has = np.zeros(self.group.pairs.size)
        for silo in self.group.silos:
            has += silo.spread(np.ones(silo.pairs.size))
        return np.asarray(has > 0)

    def _leave_out_pairs(self, shown: BoolVector) -> None:
        silos = [restrict(silo, shown) for silo in self.group.silos]
        try:
            for silo in silos:
                check_silo(self.study.settings, silo)
        except SilographError as error:
            raise Refused("data", f"without the pairs that too few sites have: {error}") from error
        self.group.close()
        self.group = SiloGroup(silos)

    # --- rounds -------------------------------------------------------------------------------------------------------

    def check_number(self, n_silos: int) -> None:
        """Refuse a number of silos that cannot be, that is beyond the limit, or that changes during a run."""
        least, most = len(self.group.silos) + len(self.sites) - 1, self.settings.max_silos
        if not least <= n_silos <= most:
            raise Refused("sites", f"{n_silos} silos in all; expected {least} or more, and site.toml allows {most}")
        if self.last is not None and n_silos != self.last.n_silos:
            raise Refused("conflict", f"{n_silos} silos in all; when the run began there were {self.last.n_silos}")

    def last_answer_to(self, asked: Asked) -> Update | Subtotal | None:
        """The answer given before, if just this was asked before; refuses another request for an answered round."""
        last, stage, number = self.last, asked.stage, asked.task.header.round
        if last is not None and (last.stage, stage) == (LEARN, SETUP):  # else round 1 of learning would be due again
            raise Refused("conflict", f"{stage}, round {number}: learning has begun")
        if last is not None and last.stage == stage == LEARN and dict(asked.scalars) != dict(last.scalars):
            raise Refused("conflict", f"{stage}, round {number}: learning began with other parameters")
        if last is None or stage != last.stage or number > last.answer.header.round:
            if self.told is not None:  # else there would be sums per group of as many graphs as the coordinator likes
                raise Refused("conflict", f"{stage}, round {number}: sums per group were told, which ends the run")
            return None
        if asked.digest != last.request_digest:
            raise Refused("conflict", f"{stage}, round {number}: was answered before, to another request")
        return last.answer

    def method(self, asked: Asked) -> Method:
        """The method that is asked; refuses parameters to which the study and its set-up cannot lead.

        It refuses to answer without masks what is to be masked.
        """
        if self.is_masked(asked.stage) and (self.masking is None or not self.masking.is_ready):
            raise Refused("keys", f"run {self.run}: the keys for its masked sum are not in this process")
        begins = self.last is None or self.last.stage == SETUP  # later on, parameters are those of this round
        if asked.stage == LEARN and begins:
            setup = build_setup(self.study.settings, self.group.pairs)
            kept = [state.own for state in self.group.states.values() if state.method == setup.name]
            with self._refusing():
                setup.check_scalars(kept, asked.scalars, asked.n_silos)
        return self._method(asked.stage, asked.scalars, asked.n_silos)

    def answer(self, method: Method, asked: Asked, *, report: bool, charge: Callable[[str], None]) -> Update | Subtotal:
        """The answer of the site's silo, or the sum over several, written down.

        `charge` pays for it, by the name of the noise that is in it: once the noise is kept, and before the answer is.
        """
        began = time.perf_counter()
        with self._refusing():
            updates = self.group.ask(method, asked.task, report=True, checked=False)
        masked = self.is_masked(asked.stage)
        if masked or self.data.several:
            answer: Update | Subtotal = self._sum(updates, method, asked.task, report=report and not masked)
        else:
            answer = updates[0] if report else _silent(updates[0])
        answer = self._add_noise(answer, method, asked)
        charge(self._noise.name_of(self._noise_key))
        if masked:
            assert self.masking is not None
            assert isinstance(answer, Subtotal)
            answer = self.masking.mask(answer, stage=asked.stage, digest=asked.digest)
        self.seconds = time.perf_counter() - began
        before = {} if self.last is None else self.last.own
        shown = None if self.masking is None or self.masking.shown is None else np.packbits(self.masking.shown)
        self.last = LastAnswer(
            stage=asked.stage,
            scalars=dict(asked.scalars),
            request_digest=asked.digest,
            n_silos=asked.n_silos,
            answer=answer,
            own={**before, **{update.silo: update.reported for update in updates if update.reported}},
            shown=(None if self.last is None else self.last.shown) if shown is None else shown.tobytes().hex(),
        )
        self.kept.save(self.group.plain(), self.last)
        return answer

    def _sum(self, updates: Sequence[Update], method: Method, task: Task, *, report: bool) -> Subtotal:
        """The sum; of what silos told of themselves, it has their samples together and the scale that sums tell."""
        site, step = self.settings.name, method.steps[task.header.step]
        total = add_some([_silent(update) for update in updates], step.up, method.units(task), source=site)
        if not report or not all("samples" in update.reported for update in updates):
            return total
        samples = sum(update.reported["samples"] for update in updates)
        return replace(total, reported={site: {"samples": float(samples), "scale": self.own.scale}})

    def _add_noise(self, answer: Update | Subtotal, method: Method, asked: Asked) -> Update | Subtotal:
        """The site's sum with noise, where the study has it on this sum."""
        fields = method.steps[asked.task.header.step].up
        if not any(field.noisy for field in fields.values()):
            return answer
        noise = plan_at_site(self.study, self.group.pairs, len(self.sites), asked.n_silos)
        units = method.units(asked.task)
        return protect_answer(answer, fields, units, self.group.pairs, noise, self._noise, self._noise_key)

    @property
    def _noise(self) -> KeptNoise:
        return KeptNoise(SiteFolder(self.folder).noise)

    @property
    def _noise_key(self) -> NoiseKey:
        """What noise is drawn for; of a masked sum it is known once all sites' keys are."""
        together = "" if self.masking is None else self.masking.together
        return NoiseKey.of(self.study, self.data.version, self.sites, self.nodes, together)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Wrong parameters end a run for ever: to try others and others would tell the silos' own terms bit by bit."""
        try:
            yield
        except ScalarsError as error:
            self.kept.end()
            raise Refused("parameters", str(error)) from error
        except ProtocolError as error:
            raise Refused("out-of-turn", str(error)) from error

    def _method(self, stage: str, scalars: Mapping[str, float], n_silos: int) -> Method:
        if stage == SETUP:
            return build_setup(self.study.settings, self.group.pairs)
        return build_silo_method(self.study.settings, scalars, self.group.pairs, n_silos)

    def finish(self, task: Task, results: Path, *, digest: str) -> Update | Subtotal | None:
        """Write the site's own results: graphs, and the consensus that was sent.

        What leaves is the graph, if it is of one table, or the sums per group, if the study compares groups.
        """
        graphs = self.group.graphs()
        if self.last is None or len(graphs) < len(self.group.silos):
            raise Refused("out-of-turn", "asked to finish a run that has not ended")
        expected = {"consensus": PAIRS_NONNEGATIVE, "certificate": LIST}
        check_parts(task.parts, expected, pairs=self.group.pairs, header=task.header, source="consensus")
        if task.vector("certificate").size not in (0, 3):
            raise Refused("malformed", "a certificate is three numbers, or none")
        if self.told is not None and self.told.digest != digest:
            raise Refused("conflict", "asked a second time, in another way, to finish with sums per group")
        found = self._results(self.last, task, graphs)
        results.mkdir(parents=True, exist_ok=True)
        with writing_folder(results / self.run, replace=True) as inside:
            found.write(inside)
        if self.study.groups is not None:
            return self._tell_groups(self.last, task, graphs, digest)
        if self.data.several:
            return None
        silo, parts = self.group.silos[0], dict[str, Vector | float](graph=graphs[self.settings.name])
        if self.study.settings.may_lack_nodes:
            parts["has"] = silo.spread(np.ones(silo.pairs.size))
        return update_of(task.header, self.settings.name, parts)

    def _tell_groups(self, last: LastAnswer, task: Task, graphs: Mapping[str, Vector], digest: str) -> Subtotal:
        if self.told is None:
            members = members_of(self.study, self.data, self.settings)
            weights = [graphs[silo.name] for silo in self.group.silos]
            told = Told(
                digest=digest, answer=sum_groups(task.header, self.settings.name, weights, members, last.scalars)
            )
            self.kept.save_told(told)
            self.told = told
        return self.told.answer

    def _results(self, last: LastAnswer, task: Task, graphs: Mapping[str, Vector]) -> OwnResults:
        sources = {
            silo.name: source_of(table, read, self.data.known.sha256[str(table.path)])
            for table, silo, read in zip(self.data.tables, self.own.silos, self.own.read, strict=True)
        }
        return OwnResults(
            run=self.run,
            study=self.study,
            sites=self.sites,
            nodes=self.nodes,
            pairs=self.group.pairs,
            consensus=task.vector("consensus"),
            certificate=tuple(task.vector("certificate").tolist()),
            graphs=graphs,
            own_nodes={silo.name: silo.nodes for silo in self.group.silos},
            evidence={name: state.evidence for name, state in self.group.states.items() if state.evidence},
            reported=last.own,
            sources=sources,
            doubts=self.own.doubts(self.study),
            setup=build_setup(self.study.settings, self.group.pairs),
            scalars=last.scalars,
            n_silos=last.n_silos,
            data=self.data.version,
            shown=last.shown,
            n_rounds=last.answer.header.round,
        )

    def close(self) -> None:
        """Let another process have the run."""
        self.group.close()
        self.kept.close()


def _silent(update: Update) -> Update:
    """The same answer, without what the silo tells of itself."""
    return replace(update, reported={})


def open_site_run(
    folder: SiteFolder,
    settings: SiteSettings,
    data: SiteData,
    run: str,
    study: StudyFile,
    nodes: Sequence[str],
    sites: Sequence[str],
) -> SiteRun:
    """Read the site's tables for a run, and the state that the site keeps of it."""
    own = load_silos(settings, data, study, nodes)
    if study.settings.noise_on_silos:
        noise = plan_at_site(study, own.silos[0].study_pairs, len(sites), n_tables=1)  # to each silo by itself
        own = protect_silos(own, noise, KeptNoise(folder.noise), NoiseKey.of(study, data.version, sites, nodes))
    about: dict[str, Any] = {
        "study": study.sha256,
        "silos": list(sites),
        "nodes": digest_of_names(nodes),
        "file": settings.data_shown,
        "data": data.version,
    }
    kept = RunStore(folder, run, about=about)
    site_run = SiteRun(
        run=run,
        study=study,
        nodes=tuple(nodes),
        sites=tuple(sites),
        settings=settings,
        folder=folder.path,
        data=data,
        own=own,
        group=SiloGroup(own.silos),
        kept=kept,
    )
    try:
        forget_old(folder.state)
        site_run.restore()
    except BaseException:
        site_run.close()
        raise
    return site_run
