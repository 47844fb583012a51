"""A study in one file, study.toml: the method, the nodes, the sites, and the policy if a site is missing.

The coordinator reads it and sends its bytes to every site, whose engineer approves them by their SHA-256. Both parse
the same bytes with the same function; to a site they are a stranger's, so that every limit here is also a defence.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from silograph._util.checks import check_positive, check_whole, is_number
from silograph._util.documents import check_keys, fill, fit_value, parse_toml, placing_errors, read_bytes, show
from silograph.data.ranks import Transform
from silograph.errors import ParameterError
from silograph.federation.fingerprints import FINGERPRINT
from silograph.federation.groups import groups_of_study
from silograph.federation.names import check_site_name, name_of, names_of, read_nodes, study_name_of
from silograph.graph.allowed import choose_pairs
from silograph.graph.pairs import Pairs
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import StudySettings
from silograph.privacy.reading import RANKS_HAVE_NO_BOUND
from silograph.privacy.settings import Privacy

LARGEST_STUDY = 1_000_000  # bytes
LONGEST_TIMEOUT = 30 * 24 * 3600.0  # what waits longer than a month is lost, and locks cannot count to infinity
TOP_KEYS = (
    "name",
    "nodes",
    "sites",
    "missing_nodes",
    "missing",
    "standardize",
    "transform",
    "scale",
    "share_graphs",
    "groups",
    "allow",
    "forbid",
    "learn",
    "privacy",
    "keys",
    "policy",
)

Missing = Literal["error", "rows", "pairs"]
OnMissing = Literal["wait", "continue", "stop"]
NamedPairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What to do when a site is missing."""

    quorum: int | None = None  # least number of sites that a result may rest on; None: as `needed` says
    timeout: float = 600.0  # seconds that a site may be silent before `on_missing` applies
    on_missing: OnMissing = "wait"

    def __post_init__(self) -> None:
        if self.quorum is not None:
            check_whole("quorum", self.quorum, least=2)  # the sum over one site is that site's own
        check_positive("timeout", self.timeout)
        if self.timeout > LONGEST_TIMEOUT:
            raise ParameterError(
                f"timeout: expected at most {LONGEST_TIMEOUT:.0f} seconds (30 days), got {self.timeout!r}. "
                'To wait without end, set on_missing = "wait".'
            )
        if self.on_missing not in get_args(OnMissing):
            raise ParameterError(f"on_missing: expected 'wait', 'continue' or 'stop', got {self.on_missing!r}.")

    def needed(self, n_sites: int) -> int:
        """How many of a study's sites a result needs: the quorum; else two to continue without others, or all."""
        if self.quorum is not None:
            return self.quorum
        return min(2, n_sites) if self.on_missing == "continue" else n_sites


HOMES = {
    "above the first [table]": TOP_KEYS,
    "below [learn]": tuple(
        field.name for field in fields(StudySettings) if field.name not in ("missing_nodes", "privacy")
    ),
    "below [privacy]": tuple(field.name for field in fields(Privacy)),
    "below [policy]": tuple(field.name for field in fields(Policy)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFile:
    """A study file as it was read."""

    text: bytes
    sha256: str  # of the bytes, as `sha256sum` prints it
    name: str
    nodes: tuple[str, ...] | None  # None where a file lists them
    nodes_file: str | None
    sites: tuple[str, ...] | None  # None: all sites of the federation
    keys: Mapping[str, str]  # site → SHA-256 of its public key, in hexadecimal; of every site where sums are masked
    missing: Missing  # what to do about gaps in tables
    standardize: bool
    transform: Transform
    scale: tuple[float, float] | None  # in which each silo's mean squared difference must lie
    share_graphs: bool
    groups: tuple[str, str] | None  # of patients, which are compared; None: nothing is
    allow: NamedPairs | None
    forbid: NamedPairs | None
    settings: StudySettings
    policy: Policy

    @property
    def scaled(self) -> bool:
        """Whether sites bring each node to unit variance."""
        return self.standardize or self.transform == "ranks"


def parse_study(data: bytes, *, source: str) -> StudyFile:
    """The study that the bytes describe; `source` is what an error calls them. No file is read."""
    if len(data) > LARGEST_STUDY:
        raise ParameterError(f"{source}: expected at most 1 MB, got more. List nodes in a file of their own.")
    top = parse_toml(data, source=source)
    with placing_errors(f"{source}, "):
        check_keys(top, TOP_KEYS, homes=HOMES)
    for key in ("name", "nodes"):
        if key not in top:
            raise ParameterError(f'{source}: expected a key {key}, got none. Add {key} = "…", above the first [table].')
    if "allow" in top and "forbid" in top:
        raise ParameterError(f"{source}: allow and forbid contradict each other. Give one of them.")
    if "scale" in top and (top.get("standardize") is True or top.get("transform", "none") != "none"):
        raise ParameterError(
            f"{source}: standardize and transform give all tables one unit, so that scale says nothing. Give one."
        )
    with placing_errors(f"{source}, [policy] "):
        policy = fill(Policy, top.get("policy", {}), homes=HOMES)
    with placing_errors(f"{source}, [privacy] "):
        privacy = fill(Privacy, top.get("privacy", {}), homes=HOMES)
    with placing_errors(f"{source}, [learn] "):
        settings = _settings(top, privacy)
    with placing_errors(f"{source}, "):
        nodes, nodes_file = _nodes(top["nodes"])
        sites = _sites(top["sites"], policy) if "sites" in top else None
        keys = _keys(top.get("keys", {}), sites)
        _check_privacy(top, settings, policy, sites, keys)
        return StudyFile(
            text=data,
            sha256=hashlib.sha256(data).hexdigest(),
            name=study_name_of(top["name"], "name"),
            nodes=nodes,
            nodes_file=nodes_file,
            sites=sites,
            keys=keys,
            missing=fit_value(top.get("missing", "error"), Missing, "missing"),
            standardize=fit_value(top.get("standardize", False), bool, "standardize"),
            transform=fit_value(top.get("transform", "none"), Transform, "transform"),
            scale=_scale(top["scale"]) if "scale" in top else None,
            share_graphs=fit_value(top.get("share_graphs", True), bool, "share_graphs"),
            groups=groups_of_study(top["groups"], settings) if "groups" in top else None,
            allow=_pairs(top["allow"], "allow") if "allow" in top else None,
            forbid=_pairs(top["forbid"], "forbid") if "forbid" in top else None,
            settings=settings,
            policy=policy,
        )


def read_study(path: Path) -> tuple[StudyFile, tuple[str, ...]]:
    """The study of a file, and its nodes, read from the file beside it where the study names one."""
    data = read_bytes(path, most=LARGEST_STUDY, cure="Check the path of the study.")
    study = parse_study(data, source=str(path))
    if study.nodes_file is None:
        return study, study.nodes or ()
    return study, read_nodes(path.parent / study.nodes_file)


def pairs_of(study: StudyFile, nodes: Sequence[str]) -> Pairs:
    """The pairs of these nodes that may be edges."""
    listed = study.allow or study.forbid
    # As objects: NumPy would give every name the space of the longest
    table = None if listed is None else np.array(listed, dtype=object)
    return choose_pairs(
        nodes,
        allowed=None if study.allow is None else table,
        forbidden=None if study.forbid is None else table,
        may_isolate=study.settings.zeta_used > 0,
        source=None if listed is None else ("forbid" if study.allow is None else "allow"),
    )


def _settings(top: Mapping[str, Any], privacy: Privacy) -> StudySettings:
    """How to learn; whether nodes may be missing is said above, where the nodes are."""
    learn = top.get("learn", {})
    if isinstance(learn, dict):
        check_keys(learn, HOMES["below [learn]"], homes=HOMES)
        learn = learn | {name: top[name] for name in ("missing_nodes",) if name in top}
    return replace(fill(StudySettings, learn, homes=HOMES), privacy=privacy)


def _keys(value: object, sites: tuple[str, ...] | None) -> dict[str, str]:
    """The fingerprints of the sites' public keys, of all sites or of none."""
    if not isinstance(value, dict) or not all(map(_is_key, value.values())):
        raise ParameterError(
            '[keys]: expected oslo = "…" for each site, the SHA-256 of its public key in 64 hexadecimal digits. '
            "`silograph federation study` writes them."
        )
    lacking, others = set(sites or ()) - set(value), set(value) - set(sites or ())
    if value and (lacking or others):
        lack, more = (", ".join(sorted(some)) or "none" for some in (lacking, others))
        found = f"without a key: {lack}; not in sites: {more}"
        raise ParameterError(f"[keys]: expected one key for each of the study's sites, and for no others ({found}).")
    if len(set(value.values())) < len(value):
        raise ParameterError("[keys]: expected another key of each site, got one twice: both would be the same party.")
    return {str(site): str(value[site]) for site in sites or () if value}


def _is_key(value: object) -> bool:
    return isinstance(value, str) and FINGERPRINT.fullmatch(value) is not None


def _check_privacy(
    top: Mapping[str, Any],
    settings: StudySettings,
    policy: Policy,
    sites: tuple[str, ...] | None,
    keys: Mapping[str, str],
) -> None:
    """Raise where the rest of the study takes back what [privacy] promises."""
    privacy, own_graphs = settings.privacy, spec_of(settings.method).one_sum
    if privacy.masked:
        if not keys:
            raise ParameterError(
                "[keys]: masked sums need the sites and their public keys in the study, so that sites approve both. "
                "`silograph federation study` writes them."
            )
        if policy.on_missing == "continue":
            raise ParameterError(
                "[policy] on_missing: with masked sums nobody can be left out: a second sum, over fewer sites, would "
                "show the site in which they differ. Use 'wait' or 'stop'."
            )
        if "scale" in top:
            raise ParameterError(
                "scale: whether a site refuses for it tells of that site alone, beside the masks, and of one pair as "
                "well as of all. Leave it out, and set standardize = true: then units do not matter."
            )
    if sites is not None:
        privacy.check_sites(len(sites))
    if (privacy.masked or (privacy.noisy and own_graphs)) and top.get("share_graphs", True):
        raise ParameterError(
            "share_graphs: a site's own graph is made of its exact data, outside what [privacy] promises. Set "
            "share_graphs = false: graphs stay at the sites."
        )
    if not privacy.noisy:
        if privacy.centres is not None:
            raise ParameterError("[privacy] centres, scales: are for epsilon alone. Leave them out.")
        return
    if top.get("standardize", False) != (privacy.centres is not None):
        raise ParameterError(
            "standardize: with epsilon, nodes are centred and scaled by public numbers: give standardize = true and "
            "[privacy] centres and scales, one number per node each, or none of the three."
        )
    if top.get("transform", "none") != "none":
        raise ParameterError(RANKS_HAVE_NO_BOUND)
    if top.get("missing", "error") == "pairs":
        raise ParameterError("missing: gaps by pairs have no bound that epsilon could rest on. Use 'rows' or 'error'.")
    if "scale" in top:
        raise ParameterError(
            "scale: whether a site refuses for it would be told without noise. Leave it or epsilon out."
        )
    if privacy.unit == "row" and privacy.min_samples is None:
        raise ParameterError(
            '[privacy] min_samples: unit = "row" needs the number of rows that every table has at least: noise depends '
            "on it, and sites with fewer refuse."
        )


def _sites(value: object, policy: Policy) -> tuple[str, ...]:
    sites = names_of(value, "sites", least=1)
    with placing_errors("sites: "):
        for site in sites:
            check_site_name(site)
    if policy.quorum is not None and policy.quorum > len(sites):
        raise ParameterError(
            f"[policy] quorum: expected at most the number of sites ({len(sites)}), got {policy.quorum}. "
            "Lower it, or add sites."
        )
    return sites


def _scale(value: object) -> tuple[float, float]:
    if not (
        isinstance(value, list) and len(value) == 2 and all(map(is_number, value)) and 0 < value[0] < value[1] < np.inf
    ):
        raise ParameterError(f"scale: expected two numbers, [low, high], with 0 < low < high, got {show(value)}.")
    return float(value[0]), float(value[1])


def _nodes(value: object) -> tuple[tuple[str, ...] | None, str | None]:
    if isinstance(value, list):
        return names_of(value, "nodes", least=2), None
    name = name_of(value, "nodes")
    if set(name) & set("/\\:") or name in (".", ".."):
        raise ParameterError(
            f"nodes: expected a list of names, or the name of a file beside the study, got {show(name)}. "
            "Put the file there and name it without a folder."
        )
    return None, name


def _pairs(value: object, where: str) -> NamedPairs:
    rows = value if isinstance(value, list) else [value]
    if not rows:
        raise ParameterError(f"{where}: expected at least one pair, got none. Leave the list out.")
    pairs = []
    for number, row in enumerate(rows, start=1):
        if not (isinstance(row, list) and len(row) == 2):
            raise ParameterError(f'{where}, pair {number}: expected two names, ["a", "b"], got {show(row)}.')
        left, right = (name_of(name, f"{where}, pair {number}") for name in row)
        if left == right:
            raise ParameterError(f"{where}, pair {number}: a node is no pair with itself ({left!r}). Drop it.")
        pairs.append((left, right))
    return tuple(pairs)
