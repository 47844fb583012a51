"""What a run leaves at a site: a run's folder like any other, over the site's own silos, as far as they know it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

from silograph._util.files import write_json
from silograph._util.types import IntVector, Vector
from silograph.analysis.beside import pull_of
from silograph.analysis.doubts import Doubt
from silograph.engine.study import StudyResult
from silograph.federation.study_file import StudyFile
from silograph.graph.pairs import Pairs
from silograph.methods.common.setup import SCALARS, SetupMethod
from silograph.privacy.statement import statement_of
from silograph.protocol.messages import Reported
from silograph.runs.results import RunContext, study_run
from silograph.runs.writer import write_results

ABOUT, STUDY = "about.json", "study.toml"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnResults:
    """What a site knows of a run that has ended."""

    run: str
    study: StudyFile
    sites: tuple[str, ...]
    nodes: tuple[str, ...]
    pairs: Pairs
    consensus: Vector
    certificate: tuple[float, ...]  # objective, relative gap, whether it met the tolerance; or nothing
    graphs: Mapping[str, Vector]  # by silo, on all pairs
    own_nodes: Mapping[str, IntVector | None]  # by silo; None: it has all
    evidence: Reported
    reported: Reported  # what silos told of themselves, here
    sources: Mapping[str, Mapping[str, Any]]  # fields of silos' records: what they were learned from
    doubts: Sequence[Doubt]
    setup: SetupMethod
    scalars: Mapping[str, float]  # what set-up found
    n_silos: int  # of all sites
    data: str  # the version of the site's data
    shown: str | None  # of a masked sum: the pairs that enough sites have, as packed bits; None: all
    n_rounds: int

    def write(self, folder: Path) -> None:
        """The folder of the run."""
        settings = self.study.settings
        context = RunContext(
            nodes=self.nodes,
            sources=self.sources,
            options={"standardize": self.study.standardize, "transform": self.study.transform},
            folder=folder,
            resumed=False,
            seconds=0.0,
            doubts=self.doubts,
        )
        run = study_run(self._learned(), settings, self.pairs, context)
        objective, gap, converged = self.certificate or (None, None, None)
        ended = None if converged is None else bool(converged)
        result = replace(
            run.record.result, objective=objective, relative_gap=gap, certified=gap is not None, converged=ended,
            setup_rounds=None, seconds=None,  # which only the coordinator knows
        )  # fmt: skip
        warned = (
            {} if ended is not False else {"convergence": f"The run ended at a gap of {gap:.1e}, above its tolerance."}
        )
        record = replace(run.record, result=result, warnings={**run.record.warnings, **warned})
        write_results(folder, replace(run, record=record))
        write_json(folder / ABOUT, {**self._about(), **self._learned_by()})
        (folder / STUDY).write_bytes(self.study.text)

    def _learned_by(self) -> dict[str, Any]:
        """All that is needed to learn the own graphs once more beside the consensus: see `stability.py`."""
        settings, rho, beta = self.study.settings, self.scalars["rho"], self.scalars["beta"]
        chosen = {name: self.evidence.get(name, {}).get("pull") for name in self.graphs}
        return {
            "method": settings.method,
            "nodes": self.nodes,
            "parameters": {**{name: self.scalars[name] for name in SCALARS}, "zeta": settings.zeta_used},
            "pull": {
                name: pull_of(settings, own, rho=rho, beta=beta, n_silos=self.n_silos) for name, own in chosen.items()
            },
            "data": self.data,
            "shown": self.shown,
            "evidence": {name: dict(told) for name, told in self.evidence.items()},
        }

    def _about(self) -> dict[str, Any]:
        names = ("objective", "relative_gap", "converged")
        certificate = dict(zip(names, self.certificate, strict=False))
        about = {"run": self.run, "study": self.study.name, "sha256": self.study.sha256, "silos": self.sites}
        settings = self.study.settings
        promise = statement_of(settings.privacy, graphs_inside=settings.graphs_inside)
        return about | {"certificate": certificate, "privacy": None if promise is None else asdict(promise)}

    def _learned(self) -> StudyResult:
        """The result as if the run had ended well: what the coordinator says of that is put in later."""
        told = (self.reported, self.evidence)
        n_edges = sum(float((w > 0).sum()) for w in self.graphs.values())
        return StudyResult(
            consensus=self.consensus,
            graphs=self.graphs,
            nodes=self.own_nodes,
            count=None,
            contributions={
                name: one["contribution"] for each in told for name, one in each.items() if "contribution" in one
            },
            reported=self.reported,
            evidence=self.evidence,
            objective=nan,
            gap=0.0,
            converged=True,
            diverged=False,
            n_rounds=self.n_rounds,
            n_setup_rounds=0,
            history=(),
            alpha=self.scalars["alpha"],
            beta=self.scalars["beta"],
            rho=self.scalars["rho"],
            lam=self.scalars["lam"],
            cost_unit=self.study.settings.cost_unit_used,
            coupling=self.setup.coupling,
            sparsity=self.setup.sparsity,
            degree=2 * n_edges / (len(self.nodes) * len(self.graphs)),
            degree_asked=self.setup.degree,
            degree_alone=None,
            degree_reached=True,
            degree_of=self.study.settings.solver_used.degree_of,
        )
