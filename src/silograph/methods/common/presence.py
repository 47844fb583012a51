"""Nodes that some silos lack: whether a silo may be as it is, and what to tell of pairs that few have."""

from collections.abc import Mapping

import numpy as np

from silograph._util.checks import list_names
from silograph._util.types import IntVector, Vector
from silograph.errors import SilosError
from silograph.graph.pairs import Pairs
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo


def check_silo(settings: StudySettings, silo: Silo) -> None:
    """Raise, before anything is sent, for a silo that the study or its method cannot use."""
    n_nodes, n_own = silo.study_pairs.n_nodes, silo.pairs.n_nodes
    if n_own < n_nodes and settings.missing_nodes == "error":
        raise SilosError(
            f"{silo.name}: expected all {n_nodes} nodes, got {n_own}. Drop the others everywhere, or allow silos to "
            "lack nodes: missing_nodes='allow'."
        )
    if n_own < 2:
        raise SilosError(f"{silo.name}: expected two nodes of the study at least, got {n_own}. Leave the silo out.")
    if settings.zeta_used == 0 and (bare := silo.pairs.isolated()).size:
        raise SilosError(
            f"{silo.name}: lacks every node with which {bare.size} of its own may be paired, and a node needs a pair "
            "when zeta is 0. Drop those nodes there, allow more pairs, or set zeta > 0."
        )
    if not silo.pairs.size:
        raise SilosError(f"{silo.name}: expected two nodes that may be paired, got none. Leave the silo out.")
    spec_of(settings.method).check_silo(settings, silo)


def nodes_of(pairs: Pairs, has: Vector) -> IntVector | None:
    """The nodes of a silo that has these pairs; nothing if they are all."""
    found = np.flatnonzero(pairs.degrees(has)).astype(np.int32)
    return None if found.size == pairs.n_nodes else found


def lonely_pairs(pairs: Pairs, count: Vector | None, nodes: Mapping[str, IntVector | None]) -> str | None:
    """What to tell of pairs that one silo alone has, or none; `nodes` are those of the silos that are known."""
    if count is None or not (count < 2).any():
        return None
    told = []
    if lonely := int((count == 1).sum()):
        whose = [f"{name} {n}" for name, some in nodes.items() if (n := _lonely(pairs, count, some))]
        named = f" ({', '.join(whose[:10])}{', …' if len(whose) > 10 else ''})" if whose else ""
        told.append(f"{lonely} pairs of nodes are in one silo alone{named}: there the consensus tells of that silo.")
    if nobody := int((count == 0).sum()):
        told.append(f"{nobody} pairs of nodes are in no silo: whether they are edges was not learned.")
    groups = _strangers(pairs.n_nodes, nodes)
    if len(groups) > 1:
        told.append(
            f"Silos fall into {len(groups)} groups that have no pair of nodes in common, and learn nothing from each "
            f"other: {'; '.join(list_names(group, most=3) for group in groups[:3])}{'; …' if len(groups) > 3 else ''}. "
            "Are nodes called differently there, or does a table lie the wrong way round?"
        )
    return " ".join(told)


def _lonely(pairs: Pairs, count: Vector, nodes: IntVector | None) -> int:
    own = count if nodes is None else count[pairs.within(nodes)[1]]
    return int((own == 1).sum())


def _strangers(n_nodes: int, nodes: Mapping[str, IntVector | None]) -> list[list[str]]:
    """The silos, those together that have two nodes in common, directly or through others."""
    alike: dict[bytes, list[str]] = {}  # thousands of silos may lack the same nodes
    for name, some in nodes.items():
        if some is None:  # it has all nodes, and so a pair in common with everyone
            return []
        alike.setdefault(np.isin(np.arange(n_nodes), some).tobytes(), []).append(name)
    if not alike:
        return []
    from scipy.sparse.csgraph import connected_components  # slow to load, for silos that lack nodes

    has = np.array([np.frombuffer(one, dtype=np.bool_) for one in alike], dtype=np.float64)
    n_groups, number = connected_components(has @ has.T >= 2, directed=False)
    return [
        [name for own, names in zip(number, alike.values(), strict=True) if own == group for name in names]
        for group in range(n_groups)
    ]
