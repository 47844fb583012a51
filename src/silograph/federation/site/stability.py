"""How stable a site's own graphs are: learned again from halves of its own rows, beside the consensus as it is.

This is for the site's people, after a run has ended: no round is asked, and nothing leaves. The tables are read as the
run read them, and the results of the run are written anew, whole, with what half-samples tell. Of the consensus nothing
can be told here: that would take the other sites' rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.checks import check_whole
from silograph._util.documents import parse_json
from silograph._util.files import bring_back, write_json, writing_folder
from silograph._util.types import Vector
from silograph.analysis.beside import Beside
from silograph.analysis.false_edges import check_threshold
from silograph.analysis.stability import StudyStability, check_halves, check_rows, silo_stability
from silograph.errors import GraphError, ParameterError, SilosError
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.data import look_at_data
from silograph.federation.site.masking import restrict
from silograph.federation.site.results import ABOUT, STUDY
from silograph.federation.site.settings import SiteSettings, read_site
from silograph.federation.site.silos import read_silos
from silograph.federation.study_file import StudyFile, parse_study
from silograph.graph.graph import Graph
from silograph.methods.common.registry import spec_of
from silograph.protocol.silo import Silo
from silograph.runs.layout import RECORD
from silograph.runs.reader import RunData, read_run
from silograph.runs.record import StabilityRecord
from silograph.runs.results import stability_record, with_stability
from silograph.runs.stability import RunStability, weights_on
from silograph.runs.writer import write_results

OnProgress = Callable[[str, float | None], None]
NEEDED = ("sha256", "nodes", "parameters", "pull", "data", "shown")  # of about.json


@dataclass(frozen=True, slots=True, kw_only=True)
class Halves:
    """What half-samples are to tell."""

    number: int
    threshold: float  # the part of them that makes an edge stable
    graphs: bool  # whether stable edges are to be graphs of their own

    def __post_init__(self) -> None:
        check_whole("half_samples", self.number, least=2)
        check_threshold(self.threshold)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EndedRun:
    """What the site has kept of a run that has ended."""

    folder: Path
    study: StudyFile
    about: Mapping[str, Any]
    run: RunData

    @property
    def consensus(self) -> Graph:
        """What was shared."""
        return self.run.main

    @property
    def graphs(self) -> Mapping[str, Graph]:
        """The site's own, by silo."""
        return self.run.graphs

    def beside(self, silo: str, consensus: Vector) -> Beside:
        """What a silo's graph was learned beside."""
        known = self.about["parameters"]
        return Beside(
            consensus=consensus,
            alpha=known["alpha"],
            beta=known["beta"],
            zeta=known["zeta"],
            rho=known["rho"],
            pull=self.about["pull"][silo],
        )


def tell_stability(
    home: Path, run: str, asked: Halves, on_progress: OnProgress = lambda what, part: None
) -> tuple[Path, dict[str, StabilityRecord]]:
    """Write a run's results anew with the stability of the site's own graphs, and tell it of each silo."""
    settings = read_site(home)
    ended = read_ended(find_run(SiteFolder(home).results, run))
    check_allowed(ended, asked.number)
    on_progress("Reading tables", None)
    silos = read_again(home, settings, ended)
    told = learn_halves(ended, silos, asked.number, on_progress)
    records = {
        name: stability_record(told, name, graph, threshold=asked.threshold, graphs=asked.graphs)
        for name, graph in ended.graphs.items()
    }
    _write(ended, told, asked, records)
    return ended.folder, records


# --- what the run has left here ---------------------------------------------------------------------------------------


def find_run(results: Path, run: str) -> Path:
    """The folder of a run's results; of a run named without its generation, the last one."""
    if Path(run).name == run:
        bring_back(results / run)
    there = sorted(path.name for path in results.iterdir() if _is_run(path)) if results.is_dir() else []
    if run in there:
        return results / run
    generations = [name for name in there if name.rpartition(".")[0] == run]
    if generations:
        return results / max(generations, key=lambda name: (len(name), name))
    known = f"Here are: {', '.join(there)}." if there else "No run has ended here yet."
    raise ParameterError(f"{run}: expected a run whose results are in {results}, got another name. {known}")


def _is_run(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".")


def read_ended(folder: Path) -> EndedRun:
    """All that is kept of a run."""
    try:
        about = parse_json((folder / ABOUT).read_bytes())
    except (OSError, ValueError) as error:
        raise GraphError(f"{folder / ABOUT}: cannot be read ({error}). Bring it back as it was.") from error
    if any(name not in about for name in NEEDED) or not all((folder / name).is_file() for name in (STUDY, RECORD)):
        raise GraphError(
            f"{folder}: was written by an earlier silograph, which did not keep how the graphs were learned. "
            "Take part in a run anew."
        )
    study = parse_study((folder / STUDY).read_bytes(), source=str(folder / STUDY))
    if study.sha256 != about["sha256"]:
        raise GraphError(f"{folder / STUDY}: is not the study of the run any more. Bring it back as it was.")
    return EndedRun(folder=folder, study=study, about=about, run=read_run(folder))


def check_allowed(ended: EndedRun, n_halves: int) -> None:
    """Raise where the own graphs are not learned from exact rows, or there are none."""
    settings = ended.study.settings
    check_halves(n_halves, settings)
    if settings.noise_on_silos:
        raise ParameterError(
            f"stability: of {settings.method!r} with epsilon, your own graphs are made of costs with noise, and "
            "half-samples of exact rows are not. Of 'oneshot' they can be told: there, only the sum carries noise."
        )
    if not spec_of(settings.method).own_graphs or ended.about["parameters"]["alike"]:
        raise ParameterError(
            f"stability: this run has one graph for all silos (method {settings.method!r}), and how stable it is "
            "cannot be told from your rows alone."
        )


# --- the tables, once more --------------------------------------------------------------------------------------------


def read_again(home: Path, settings: SiteSettings, ended: EndedRun) -> tuple[Silo, ...]:
    """The site's silos as the run had them, with their rows in blocks; raises where data or limits are others now."""
    try:
        data = look_at_data(settings, home)
        if data.version != ended.about["data"]:
            raise SilosError(
                f"{data.place}: has changed since run {ended.folder.name}, or is read in another way (site.toml), so "
                "that its rows are others. Bring both back as they were, or take part in a new run."
            )
        own = read_silos(settings, data, ended.study, ended.about["nodes"], blocks=True)
        data.check_unchanged()
    except Refused as error:
        raise SilosError(error.detail) from error
    silos = tuple(_as_shown(silo, ended.about["shown"]) for silo in own.silos)
    nodes = ended.about["nodes"]
    for silo in silos:
        names = tuple(nodes) if silo.nodes is None else tuple(nodes[node] for node in silo.nodes)
        if silo.name not in ended.graphs or names != ended.graphs[silo.name].names:
            raise SilosError(
                f"{silo.name}: its nodes are not those of its graph in {ended.folder}. If name or min_tables in "
                "site.toml has changed since, bring it back."
            )
        if silo.blocks is not None:
            check_rows(silo)  # of all silos, before hours go by with the first
    return silos


def _as_shown(silo: Silo, shown: str | None) -> Silo:
    """Without the pairs that too few sites of a masked sum have."""
    if shown is None:
        return silo
    bits = np.frombuffer(bytes.fromhex(shown), dtype=np.uint8)
    return restrict(silo, np.unpackbits(bits, count=silo.study_pairs.size).astype(np.bool_))


def learn_halves(ended: EndedRun, silos: tuple[Silo, ...], n_halves: int, on_progress: OnProgress) -> RunStability:
    """The stability of every silo's own graph."""
    pairs, names = silos[0].study_pairs, ended.consensus.names
    consensus = weights_on(pairs, names, ended.consensus)

    def tell(number: int) -> OnProgress:
        return lambda what, part: on_progress(what, (number + (part or 0.0)) / len(silos))

    found = {
        silo.name: silo_stability(silo, ended.beside(silo.name, consensus), n_halves, on_progress=tell(number))
        for number, silo in enumerate(silos)
    }
    study = StudyStability(n_halves=n_halves, of="rows", consensus=None, silos=found)
    return RunStability(names=names, pairs=pairs, study=study)


# --- the results, anew ------------------------------------------------------------------------------------------------


def _write(ended: EndedRun, told: RunStability, asked: Halves, records: Mapping[str, StabilityRecord]) -> None:
    """All of the run's folder but what others put there, to the side, then in its place."""
    with writing_folder(ended.folder, replace=True) as made:
        run = replace(ended.run, folder=made)
        write_results(made, with_stability(run, told, threshold=asked.threshold, graphs=asked.graphs))
        own = {name: asdict(record) for name, record in records.items()}
        write_json(made / ABOUT, {**ended.about, "stability": own})
        (made / STUDY).write_bytes(ended.study.text)
