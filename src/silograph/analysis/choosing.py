"""What a study leaves open is chosen here, where all silos are in one process: the coupling, α and β, and the edges.

    coupling   half way, on a logarithmic scale, between a usual one and the one whose graphs have the least loss
               Σ_i g_i on rows that were held out: each silo's own loss, over contiguous parts of its rows. α and β are
               those of the silos alone: at others, losses do not compare
    α, β       those at which pairs are ranked best (`ranking_degree`), whatever the degree asked for
    degree     of the optimum's edges, each graph keeps the strongest

The degree could be had by another α and β instead, were it not for two things. Drawn together, silos have each other's
edges as well: however sparse each alone, together they stay above some degree, often twice the one asked for. And what
is learned at a low degree ranks pairs worse.

A coupling that was chosen is learned with as if it had been given. So whoever gives it, such as a run that goes on
after it was stopped, has the same bits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from silograph._util.types import Vector
from silograph.analysis.choices import Choices, read_choices, write_choices
from silograph.analysis.scores import consensus_rank
from silograph.data.blocks import N_BLOCKS
from silograph.engine.batch import is_large, map_in_order
from silograph.engine.study import FINAL_GRAPHS, OnRound, Optimum, StudyResult, TriedCoupling, learn_silos, set_up_silos
from silograph.errors import ParameterError, SilosError
from silograph.graph.pairs import Pairs
from silograph.graph.strongest import keep_strongest
from silograph.local.degree import check_degree, default_degree
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import AUTO, StudySettings
from silograph.methods.common.setup import DEFAULT_COUPLING, FixedModel
from silograph.protocol.silo import Silo

OnProgress = Callable[[str, float | None], None]
COUPLINGS = (1.2, 0.8, 0.5, 0.3, 0.17, 0.1, 0.05, 0.0)  # from the strongest on, each the start of the next
FOLDS = 4
LOSS_TOL = 1e-4  # relative gap of studies whose losses are compared
MOST_NUMBERS = 2**26  # that blocks of all silos may hold for the coupling to be chosen unasked: 512 MB
# Few rows have their least loss at couplings stronger than those that rank pairs best, and many rows at weaker ones.
# Mean regret of average precision, personal and consensus, against the best of twelve couplings, on 105 draws of five
# kinds with 10 to 100 nodes: least loss .013 .011; half way .007 .007; always the usual .028 .007. Of silos that have
# nothing in common, personal: .025, .037, .128
USUAL = 0.25
WEAKEST = 0.03  # what the least loss counts as where silos alone have it: there is a consensus of the model's own
# Silos alone have 1.7 √nodes neighbours: denser than a picture should be, but there weights rank true edges best. Mean
# average precision of personal and consensus graphs on four families, by this degree. 10 nodes: 3: .859 .832; 4.5: .875
# .875; 5.4: .876 .884; 7: .873 .893. 20: 6: .861 .917; 8: .864 .928; 10: .860 .930; 12: .854 .929. 50: 5: .808 .828; 8:
# .827 .864; 12: .829 .879; 18: .824 .887; 26: .815 .891. 100: 8: .818 .836; 12: .826 .851; 17: .824 .857; 26: .817 .861
PER_ROOT, MOST_ALONE, MOST_PART = 1.7, 17.0, 0.6  # no more than at 100 nodes, nor than a part of what is possible
DENSER = 1.4  # times the degree of silos alone, where their optimum has fewer edges than are asked for,
SPARSEST = 0.5  # which has been as little as .67 of that degree, of many silos that fuse
PROMISE = 0.05  # relative, of the degree


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """Whom to tell what is going on."""

    round: OnRound = lambda stage, record: None
    progress: OnProgress = lambda what, part: None


def chooses_coupling(settings: StudySettings, *, n_silos: int, pairs: Pairs, has_rows: bool) -> bool:
    """Whether the coupling is to be chosen: where "auto" says so, or nothing is said and it can be afforded."""
    asked = settings.coupling == AUTO
    if asked and settings.privacy.noisy:
        raise ParameterError("coupling: 'auto' looks at exact rows, so that epsilon would promise too much. Give one.")
    if asked and not has_rows:
        raise ParameterError("coupling: 'auto' holds out rows, and precomputed distances have none. Give a number.")
    if asked:
        return True
    exact = settings.method == "exact" and settings.coupling is None and settings.nu is None and n_silos > 1
    exact = exact and settings.weights == "adaptive"
    fits = n_silos * N_BLOCKS * pairs.size <= MOST_NUMBERS
    return exact and has_rows and not settings.privacy.noisy and fits


def learn_study(
    silos: Sequence[Silo],
    settings: StudySettings,
    *,
    nodes: Sequence[str] = (),
    checkpoint: Path | None = None,
    start: Vector | None = None,
    whole: bool = False,
    workers: int | None = None,
    telling: Telling = Telling(),
) -> StudyResult:
    """Choose what the settings leave open, then learn; as `learn_silos` where they leave nothing open.

    `whole`: graphs are the whole optimum, and α and β follow from the degree that silos have alone, as between sites.
    """
    choices = None if checkpoint is None else read_choices(checkpoint)
    if choices is None:
        choices = _choose(silos, settings, nodes, workers, telling, whole=whole)
        if checkpoint is not None:
            write_choices(checkpoint, choices)
    chosen = replace(
        settings,
        degree=choices.degree_alone if settings.alpha is None else None,
        coupling=choices.coupling if settings.coupling in (None, AUTO) else settings.coupling,
    )
    study = learn_silos(
        silos, chosen, nodes=nodes, checkpoint=checkpoint, start=start, workers=workers, on_round=telling.round
    )
    study = replace(study, coupling_curve=choices.curve)
    return study if whole else with_strongest(study, silos, settings)


def _choose(
    silos: Sequence[Silo],
    settings: StudySettings,
    nodes: Sequence[str],
    workers: int | None,
    telling: Telling,
    *,
    whole: bool,
) -> Choices:
    if not silos:
        raise SilosError("Expected at least one silo, got none.")
    pairs, keeps = silos[0].study_pairs, keeps_strongest(settings, len(silos)) and not whole
    own = default_degree(pairs) if len(silos) == 1 and settings.degree is None else settings.degree
    choices = Choices(degree_alone=ranking_degree(pairs) if keeps else own)
    if keeps and settings.degree is not None:
        check_degree(settings.degree, pairs)
    has_rows = all(silo.blocks is not None for silo in silos)
    if chooses_coupling(settings, n_silos=len(silos), pairs=pairs, has_rows=has_rows):
        alone = replace(settings, degree=choices.degree_alone)
        choices = choose_coupling(silos, alone, nodes=nodes, workers=workers, on_progress=telling.progress)
    if keeps and settings.degree is not None and settings.degree > SPARSEST * ranking_degree(pairs):
        chosen = replace(settings, coupling=choices.coupling) if choices.coupling is not None else settings
        choices = replace(choices, degree_alone=_dense_enough(silos, chosen, workers, telling.progress))
    return choices


# --- the degree -------------------------------------------------------------------------------------------------------


def keeps_strongest(settings: StudySettings, n_silos: int) -> bool:
    """Whether graphs are the strongest edges of an optimum: where silos are coupled, and α and β are not given.

    Of silos alone and of one graph for all, set-up finds an optimum that has the degree.
    """
    alone = n_silos == 1 or spec_of(settings.method).one_sum or settings.method == "independent"
    return not (alone or settings.by_gradient) and settings.alpha is None


def ranking_degree(pairs: Pairs) -> float:
    """The degree of silos alone at whose α and β pairs are ranked best."""
    possible = 2 * pairs.size / pairs.n_nodes
    return max(1.0, min(PER_ROOT * float(np.sqrt(pairs.n_nodes)), MOST_ALONE, MOST_PART * possible))


def with_strongest(study: StudyResult, silos: Sequence[Silo], settings: StudySettings) -> StudyResult:
    """The study with the strongest edges of its graphs, where these have more than are asked for."""
    if not keeps_strongest(settings, len(silos)):
        return study
    asked = default_degree(silos[0].study_pairs) if settings.degree is None else settings.degree
    graphs = {
        silo.name: silo.spread(keep_strongest(silo.pairs, silo.take(study.graphs[silo.name]), asked)) for silo in silos
    }
    n_nodes, n_edges = sum(silo.pairs.n_nodes for silo in silos), sum(np.count_nonzero(w) for w in graphs.values())
    degree = 2 * n_edges / n_nodes
    near = max(PROMISE * asked, (1 + 1e-9) * len(silos) / n_nodes)  # or half an edge of each graph
    return replace(
        study,
        graphs=graphs,
        consensus=keep_strongest(silos[0].study_pairs, study.consensus, asked, consensus_rank(silos, settings, study)),
        optimum=Optimum(consensus=study.consensus, graphs=study.graphs, degree=study.degree),
        degree=degree,
        degree_asked=asked,
        degree_reached=bool(abs(degree - asked) <= near),
        degree_of=FINAL_GRAPHS,
    )


def _dense_enough(
    silos: Sequence[Silo], settings: StudySettings, workers: int | None, on_progress: OnProgress
) -> float | None:
    """A degree of silos alone at which the optimum has as many edges as are asked for; None: the usual one has."""
    pairs, asked = silos[0].study_pairs, settings.degree
    assert asked is not None
    alone, most = ranking_degree(pairs), 2 * pairs.size / pairs.n_nodes
    while True:  # at the full tolerance: with a loose one, graphs have edges that the optimum has not
        on_progress(f"Looking for {asked:g} neighbours of each node", None)
        study = learn_silos(silos, replace(settings, degree=alone), workers=workers)
        fewest = min(2 * np.count_nonzero(study.graphs[silo.name]) / silo.pairs.n_nodes for silo in silos)
        if fewest >= asked or alone >= most:
            return alone
        alone = min(alone * DENSER, most)


# --- the coupling -----------------------------------------------------------------------------------------------------


def choose_coupling(
    silos: Sequence[Silo],
    settings: StudySettings,
    *,
    nodes: Sequence[str],
    workers: int | None,
    on_progress: OnProgress,
) -> Choices:
    """The coupling with the least loss on held-out rows, and all losses."""
    at_one = set_up_silos(silos, replace(settings, coupling=1.0, sparsity=0.0), nodes=nodes, workers=workers)
    if at_one.rho == 0:  # silos that are alike: all have the pooled graph, whatever the coupling
        return Choices(coupling=DEFAULT_COUPLING, degree_alone=settings.degree)
    known = replace(settings, degree=None, alpha=at_one.alpha, beta=at_one.beta)
    path = []
    for coupling in COUPLINGS:
        found = set_up_silos(silos, replace(known, coupling=coupling), workers=workers)
        path.append(FixedModel(alpha=found.alpha, beta=found.beta, rho=found.rho, lam=found.lam))
    losses = np.zeros(len(COUPLINGS))
    rough = replace(known, coupling=DEFAULT_COUPLING, tol=max(LOSS_TOL, settings.tol))
    by_fold = map_in_order(
        lambda fold: _losses(silos, rough, path, fold), range(FOLDS), workers=workers, large=lambda _: is_large(silos)
    )
    for done, loss in enumerate(by_fold, start=1):
        losses += loss / FOLDS
        on_progress(f"Choosing the coupling of {len(silos)} silos", done / FOLDS)
    tried = sorted(zip(COUPLINGS, losses.tolist(), strict=True))
    curve = tuple(TriedCoupling(coupling=coupling, loss=loss) for coupling, loss in tried)
    return Choices(coupling=take_coupling(curve), curve=curve, degree_alone=settings.degree)


def take_coupling(curve: Sequence[TriedCoupling]) -> float:
    """From the losses of couplings, the one to take."""
    best = min(curve, key=lambda one: one.loss).coupling
    return float(np.sqrt(max(best, WEAKEST) * USUAL))


def _losses(silos: Sequence[Silo], settings: StudySettings, path: Sequence[FixedModel], fold: int) -> Vector:
    """By coupling, the mean loss over silos of one part of their rows, learned without it."""
    seen, unseen = zip(*(_without(silo, fold) for silo in silos), strict=True)
    losses, start = np.zeros(len(path)), None
    for k, fixed in enumerate(path):
        study = learn_silos(seen, settings, start=start, fixed=fixed, workers=1)
        start = study.consensus if fixed.rho > 0 else None
        for silo in unseen:
            problem = silo.problem(alpha=fixed.alpha, beta=fixed.beta, zeta=settings.zeta_used)
            losses[k] += problem.value(silo.take(study.graphs[silo.name])) / len(silos)
    return losses


def _without(silo: Silo, fold: int) -> tuple[Silo, Silo]:
    """The silo without one part of its rows, and with that part alone."""
    assert silo.blocks is not None
    folds = silo.blocks.folds(FOLDS)
    held = folds[fold % len(folds)]
    seen = [block for block in range(len(silo.blocks.counts)) if block not in held]
    if not seen:  # a single block
        seen = held
    first, second = (replace(silo, cost=silo.blocks.cost(part), blocks=None) for part in (seen, held))
    return first, second
