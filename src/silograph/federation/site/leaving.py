"""What leaves a site once it approves a study, field by field, in words: as the steps of set-up and method have it."""

from collections.abc import Mapping, Sequence
from math import exp

import numpy as np

from silograph.errors import ParameterError
from silograph.federation.groups import SIDES
from silograph.federation.study_file import StudyFile
from silograph.graph.pairs import Pairs
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import StudySettings
from silograph.methods.common.setup import ModelParameters, build_setup
from silograph.privacy.settings import OPEN, Privacy
from silograph.protocol.method import Method

WORDS = {
    "cost": "the mean squared difference z/N of your rows, for each pair of nodes, as it is",
    "log_theta": "where your search for the degree begins: a number made of z/N",
    "degree": "the mean degree of your own graph, at a parameter that the coordinator tries",
    "force_square": "how strong a force would hold your graph at the pooled one",
    "force": "the force between your graph and the consensus, for each pair: it tells z/N again",
    "target": "where your side would have the consensus, for each pair",
    "metric": "how firmly your graph resists, for each pair: it tells which edges you have",
    "products": "inner products of your steps, a few numbers",
    "apart": "your own graph less the consensus, for each pair; of two silos the sums tell both graphs",
    "tilted": "the same, times the difference of their total weights",
    "tilt": "the difference of the total weights of your graph and the consensus",
    "tilt_square": "the square of that",
    "ahead": "your part of the objective at some other consensus graphs, a few numbers",
    "primal": "your part of the objective",
    "objective": "your part of the objective",
    "value": "your part of the objective",
    "bound": "your part of the certificate",
    "boundless": "whether your part of the certificate is missing",
    "gap": "how far your own graph is from its optimum",
    "fused": "whether your graph is the consensus",
    "diverged": "whether your steps were too long",
    "edges": "the number of your edges",
    "w": "your own graph of the round: a weight for each pair",
    "weighted": "your own graph of the round times gamma, which is sent too",
    "gamma": "your weight, 1 over the distance of your graph from the consensus",
    "square": "the squared distance of your graph from the consensus",
    "work": "an inner product of your graph and its distance from the consensus",
    "count": "which pairs of nodes you have: 1 for each, 0 for the others",
    "fused_at": "whether your graph is the consensus: 1 or 0 for each pair that you have",
    "silos": "that you are counted: 1",
    "weight": "your weight: the nearer your graph is to the consensus, the more; with the costs it is known anyway",
}
HOW = {  # masked, with noise: how costs leave
    (False, False): "as it is",
    (False, True): "with noise",
    (True, False): "under masks that only the sum over all sites takes off",
    (True, True): "with a share of the noise, under masks that only the sum over all sites takes off",
}
MUCH = 3.0  # ε from which on people are told what it means
GRAPHS = {"w", "weighted", "apart"}  # fields that are the site's graph


def fields_up(study: StudyFile, pairs: Pairs, *, n_tables: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields that may leave in set-up, and in the rounds after it: of all methods that set-up may lead to."""
    setup = build_setup(study.settings, pairs)
    many = n_tables > 2 or (study.sites is not None and len(study.sites) > 2)
    methods = possible_methods(study.settings, n_silos=3 if many else 2)  # of two, the exact method may ask more
    rounds = [field for method in methods for field in _fields(method)]
    return _fields(setup), tuple(dict.fromkeys(rounds))


def possible_methods(settings: StudySettings, *, n_silos: int) -> list[Method]:
    """The methods that this study may be run by. Without a coupling, or with silos that are alike, it is a simpler one.

    Only their steps count here, so that all other numbers but the coupling are any.
    """
    coupled = settings.is_coupled and settings.coupling != 0
    made = []
    for rho, alike in ((1.0, False), (0.0, True)) if coupled else ((0.0, False), (0.0, True)):
        model = ModelParameters(
            n_silos=n_silos,
            alpha=1.0,
            beta=1.0,
            zeta=settings.zeta_used,
            pooled=np.zeros(1),
            rho=rho,
            lam=rho,
            alike=alike,
        )
        try:
            made.append(spec_of(settings.method).build(settings, model))
        except ParameterError:  # Algorithm 1 needs a coupling, and ends where there is none
            continue
    return made


def words_of(fields: tuple[str, ...], privacy: Privacy = OPEN, *, several: bool = False) -> Mapping[str, str]:
    """Each field in words; of a method that is not silograph's own, nothing but the name is known.

    `several`: of one of the tables that the site adds up.
    """
    unknown = "a number or numbers of a method that is not silograph's own: ask"
    known = WORDS | {"cost": WORDS["cost"].removesuffix("as it is") + HOW[privacy.masked, privacy.noisy]}
    words = {name: known.get(name, unknown) for name in fields}
    if not several:
        return words
    for yours, its in {"your": "its", "you are": "it is", "you have": "it has"}.items():
        words = {name: text.replace(yours, its) for name, text in words.items()}
    return words


def group_words(groups: tuple[str, str], sizes: Sequence[int]) -> Mapping[str, str]:
    """Each field of the sums per group in words; `sizes` are those of this site's groups."""
    words = dict[str, str]()
    for side, name, size in zip(SIDES, groups, sizes, strict=True):
        words |= {
            f"count_{side}": f"how many they are in {name!r}: {size}",
            f"sum_{side}": f"the sum of the graphs in {name!r}: of the weights, for each pair of nodes",
            f"squares_{side}": f"the sum of the squares of the weights in {name!r}, for each pair of nodes",
        }
    return words


def promises(study: StudyFile) -> list[str]:
    """What masks and noise mean for this site, and what they do not."""
    privacy, sites = study.settings.privacy, ", ".join(study.sites or ())
    lines = []
    if privacy.masked:
        lines += [
            f"One masked sum: the coordinator learns the sum over {sites}, not this site's term.",
            "The sum comes back to every site: each learns the sum of the others' terms. All the others and the "
            "coordinator together learn yours. A site whose numbers on the same data were told open counts with them.",
        ]
    if privacy.masked and study.settings.may_lack_nodes:
        lines += [
            "Which pairs of nodes you have, and your min_sites, are told to everybody as they are. At a pair the sum "
            "is over the sites that say they have it: these others and the coordinator together learn yours there."
        ]
    if privacy.noisy:
        lines += [
            f"It carries noise: epsilon = {privacy.epsilon:g}, delta = {privacy.delta:g} for one {privacy.unit}. "
            "Whatever is made of it afterwards costs nothing more. How many rows and tables you have counts as public."
        ]
    if privacy.masked and privacy.noisy:
        lines += [f"Each site adds a share of the noise: it is enough if at most {privacy.collusion} tell theirs."]
    if privacy.noisy and not study.settings.graphs_inside:
        lines += ["Your own graph is made of your exact data and stays here: to publish it is outside that promise."]
    return lines


def weak_promises(study: StudyFile, size: int) -> list[str]:
    """What of the promise is less than it seems, for so many rows or tables."""
    privacy, said = study.settings.privacy, list[str]()
    if privacy.epsilon is None or privacy.delta is None:
        return said
    if privacy.epsilon > MUCH:
        factor = f"{exp(min(privacy.epsilon, 700)):.2g}"
        said += [f"epsilon = {privacy.epsilon:g} lets one {privacy.unit} make a result {factor} times as likely."]
    if privacy.delta * size >= 1:
        said += [
            f"delta = {privacy.delta:g} is not below one in {size}, as many as you have here: with that chance the "
            "promise may fail for somebody. A delta well below is usual."
        ]
    return said


def _fields(method: Method) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for step in method.steps.values() for name in step.up))
