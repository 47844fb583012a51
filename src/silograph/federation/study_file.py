"""A study in one file, study.toml: what is to be learned, from which nodes and sites, and what holds if one is missing.

The coordinator reads it and sends its bytes to every site, whose engineer approves them by their SHA-256. Both parse
the same bytes with the same function; to a site they are a stranger's, so that every limit here is also a defence.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from silograph._util.checks import check_positive, check_whole
from silograph.errors import ParameterError
from silograph.federation.names import LARGEST, MOST_LETTERS, clipped, name_of, names_of, read_nodes, shown
from silograph.graph.allowed import choose_pairs
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings

MOST_BYTES = 1_000_000
MOST_SECONDS = 30 * 24 * 3600.0  # what waits longer than a month is lost, and locks cannot count to infinity
SITE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
STUDY_NAME = re.compile(r"[^\W_][\w .-]{0,79}")  # no slash: a study's name may become a folder's
KEYS = ("name", "nodes", "sites", "standardize", "share_graphs", "allow", "forbid", "learn", "policy")

# tomllib takes time and memory with the square of a key's parts: 1 MB of "a.a.a…" would fill a terabyte. So texts in
# quotes are made one letter each, comments none, and what then still has eight points in a row is never parsed.
QUOTED = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5})?' r"|'''(?:[^']|'(?!''))*+(?:'{3,5})?"
    r'|"(?:[^"\\\n]|\\.)*+"?' r"|'[^'\n]*+'?" r"|(?P<comment>\#[^\n]*+)",
    re.DOTALL,
)  # fmt: skip
LONG_KEY = re.compile(r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){8}")

OnMissing = Literal["wait", "continue", "stop"]
NamedPairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What holds when a site is missing."""

    quorum: int | None = None  # least number of sites that a result may rest on; None: as `needed` says
    timeout: float = 600.0  # seconds that a site may be silent before `on_missing` applies
    on_missing: OnMissing = "wait"

    def __post_init__(self) -> None:
        if self.quorum is not None:
            check_whole("quorum", self.quorum, least=2)  # the sum over one site is that site's own
        check_positive("timeout", self.timeout)
        if self.timeout > MOST_SECONDS:
            raise ParameterError(
                f"timeout: expected at most {MOST_SECONDS:.0f} seconds (30 days), got {self.timeout!r}. "
                'To wait without end, set on_missing = "wait".'
            )
        if self.on_missing not in get_args(OnMissing):
            raise ParameterError(f"on_missing: expected 'wait', 'continue' or 'stop', got {self.on_missing!r}.")

    def needed(self, n_sites: int) -> int:
        """How many of a study's sites a result needs: the quorum; else two to continue without others, or all."""
        if self.quorum is not None:
            return self.quorum
        return min(2, n_sites) if self.on_missing == "continue" else n_sites


SETTINGS, POLICIES = (tuple(field.name for field in fields(kind)) for kind in (StudySettings, Policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFile:
    """A study file as it was read."""

    text: bytes
    sha256: str  # of the bytes, as `sha256sum` prints it
    name: str
    nodes: tuple[str, ...] | None  # None where a file lists them
    nodes_file: str | None
    sites: tuple[str, ...] | None  # None: all sites of the federation
    standardize: bool
    share_graphs: bool
    allow: NamedPairs | None
    forbid: NamedPairs | None
    settings: StudySettings
    policy: Policy


def parse_study(data: bytes, *, source: str) -> StudyFile:
    """The study that the bytes describe; `source` is what an error calls them. No file is read."""
    top = _loaded(data, source)
    _check_keys(top, KEYS, f"{source}, ")
    name = _study_name(_given(top, "name", source), f"{source}, name")
    nodes, nodes_file = _nodes(_given(top, "nodes", source), f"{source}, nodes")
    sites = names_of(top["sites"], f"{source}, sites", least=1) if "sites" in top else None
    for site in sites or ():
        _located(f"{source}, sites: ", check_site_name, site)
    policy = _located(f"{source}, [policy] ", _settings, Policy, top.get("policy", {}))
    if sites is not None and policy.quorum is not None and policy.quorum > len(sites):
        raise ParameterError(
            f"{source}, [policy] quorum: expected at most the number of sites ({len(sites)}), got {policy.quorum}. "
            "Lower it, or add sites."
        )
    if "allow" in top and "forbid" in top:
        raise ParameterError(f"{source}: allow and forbid contradict each other. Give one of them.")
    return StudyFile(
        text=data,
        sha256=hashlib.sha256(data).hexdigest(),
        name=name,
        nodes=nodes,
        nodes_file=nodes_file,
        sites=sites,
        standardize=bool(_fitted(top.get("standardize", False), bool, f"{source}, standardize")),
        share_graphs=bool(_fitted(top.get("share_graphs", True), bool, f"{source}, share_graphs")),
        allow=_pairs(top["allow"], f"{source}, allow") if "allow" in top else None,
        forbid=_pairs(top["forbid"], f"{source}, forbid") if "forbid" in top else None,
        settings=_located(f"{source}, [learn] ", _settings, StudySettings, top.get("learn", {})),
        policy=policy,
    )


def read_study(path: Path) -> tuple[StudyFile, tuple[str, ...]]:
    """The study of a file, and its nodes, read from the file beside it where the study names one."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ParameterError(f"{path}: the study cannot be read ({error.strerror}). Check the path.") from error
    study = parse_study(data, source=str(path))
    if study.nodes_file is None:
        return study, study.nodes or ()
    return study, read_nodes(path.parent / study.nodes_file)


def pairs_of(study: StudyFile, nodes: Sequence[str]) -> Pairs:
    """The pairs of these nodes that may be edges."""
    listed = study.allow or study.forbid
    # As objects: NumPy would give every name the room of the longest
    table = None if listed is None else np.array(listed, dtype=object)
    return choose_pairs(
        nodes,
        allowed=None if study.allow is None else table,
        forbidden=None if study.forbid is None else table,
        may_isolate=study.settings.zeta_used > 0,
        source=None if listed is None else ("forbid" if study.allow is None else "allow"),
    )


def check_site_name(name: str) -> None:
    """Raise unless a site may be called so: names become folders and stand in certificates."""
    if not (isinstance(name, str) and SITE_NAME.fullmatch(name)):
        raise ParameterError(
            f"site name: expected at most 40 of a-z, 0-9 and '-', the first no '-', got {shown(name)}. Rename it."
        )


def template(name: str, sites: Sequence[str], nodes_file: str) -> str:
    """A study file to begin with, every choice explained; without sites, all of the federation take part."""
    listed = json.dumps(list(sites), ensure_ascii=False)
    text = TEMPLATE.format(
        name=json.dumps(name, ensure_ascii=False),
        nodes=json.dumps(nodes_file, ensure_ascii=False),
        sites=f"sites = {listed}" if sites else '# sites = ["oslo", "lima"]',
    )
    parse_study(text.encode("utf-8", "surrogatepass"), source="study.toml")
    return text


TEMPLATE = """\
# What this study learns, from whom. Every site gets this file as it is here and approves it by its SHA-256
# (sha256sum study.toml): after any change, a space even, the sites are asked anew.

name = {name}
nodes = {nodes}  # beside this file: one name per line, or a .csv or .tsv table whose first row names them
{sites}  # leave it out for all sites of the federation
standardize = false  # true: every site scales each node to unit variance first
share_graphs = true  # each site's own graph comes to the coordinator, unless the site forbids it
# forbid = [["a", "b"]]  # pairs of nodes that cannot be edges; or allow = […]: the only ones that can

[learn]
method = "exact"
degree = 5  # edges per node to aim at
coupling = 0.5  # how much the sites' graphs are drawn together; 0: each site for itself

[policy]
timeout = 600  # seconds that a site may be silent before on_missing applies
on_missing = "wait"  # wait: until it is back; continue: without it; stop: end the run
# quorum = 2  # least number of sites that a result may rest on; by default all, or 2 to continue
"""


def _loaded(data: bytes, source: str) -> dict[str, Any]:
    if len(data) > MOST_BYTES:
        raise ParameterError(f"{source}: expected at most 1 MB, got more. List nodes in a file of their own.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParameterError(f"{source}, line {line}: expected UTF-8 text. Save the file as UTF-8.") from error
    bare = QUOTED.sub(lambda found: "" if found["comment"] else "q", text)
    if LONG_KEY.search(bare):
        raise ParameterError(f"{source}: expected keys such as learn.degree, got one of many parts. Correct it.")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ParameterError(f"{source}: expected lists of names, got lists in lists in lists. Unpack them.") from error
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{source}: expected TOML, got an error: {clipped(str(error))}. Correct it.") from error
    except ValueError as error:  # Python converts no more than 4300 digits
        raise ParameterError(f"{source}: expected numbers of some digits, got thousands. Correct them.") from error


def _settings(kind: type, table: object) -> Any:
    """A dataclass filled from a TOML table, every value of the type that its field declares."""
    if not isinstance(table, dict):
        raise ParameterError(f"expected a table of settings, got {shown(table)}. Write one setting per line below it.")
    _check_keys(table, SETTINGS if kind is StudySettings else POLICIES, "")
    hints = get_type_hints(kind)
    return kind(**{key: _fitted(value, hints[key], key) for key, value in table.items()})


def _located(place: str, function: Any, *arguments: object) -> Any:
    """What the function returns; an error of it tells the place first."""
    try:
        return function(*arguments)
    except ParameterError as error:
        raise ParameterError(f"{place}{error}") from error


def _fitted(value: object, hint: Any, where: str) -> object:
    """The value as its type asks: whole numbers become floats where those are meant, and true is no number."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    if isinstance(value, str) and value in choices:
        return value
    if type(value) is bool and bool in kinds:
        return value
    if type(value) is int and abs(value) <= LARGEST and (int in kinds or float in kinds):
        return value if int in kinds else float(value)
    if type(value) is float and float in kinds and math.isfinite(value):
        return value
    words = {bool: "true or false", int: "a whole number", float: "a finite number"}
    expected = [words[kind] for kind in kinds if kind in words] + [json.dumps(choice) for choice in choices]
    hint_words = _meant(value, choices) if isinstance(value, str) else ""
    raise ParameterError(f"{where}: expected {' or '.join(expected)}, got {shown(value)}.{hint_words}")


def _given(top: Mapping[str, Any], key: str, source: str) -> Any:
    if key not in top:
        raise ParameterError(f'{source}: expected a key {key}, got none. Add {key} = "…", above the first [table].')
    return top[key]


def _check_keys(table: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    for key in table:
        if key not in known:
            ask = _home(key) or _meant(key, known) or f" Known are {', '.join(known)}."
            raise ParameterError(f"{place}{shown(key)}: no such key.{ask}")


def _home(key: str) -> str:
    """Where a key belongs that stands in the wrong table: in TOML, all that follows [policy] is the policy's."""
    homes = {"above the first [table]": KEYS, "below [learn]": SETTINGS, "below [policy]": POLICIES}
    found = [home for home, keys in homes.items() if key in keys]
    return f" It belongs {found[0]}." if found else ""


def _meant(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word[:MOST_LETTERS], known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _study_name(value: object, where: str) -> str:
    name = name_of(value, where)
    if not STUDY_NAME.fullmatch(name):
        raise ParameterError(
            f"{where}: expected a letter or digit, then at most 79 of letters, digits, spaces, '.', '-' and '_', "
            f"got {shown(name)}. Rename the study."
        )
    return name


def _nodes(value: object, where: str) -> tuple[tuple[str, ...] | None, str | None]:
    if isinstance(value, list):
        return names_of(value, where, least=2), None
    name = name_of(value, where)
    if set(name) & set("/\\:") or name in (".", ".."):
        raise ParameterError(
            f"{where}: expected a list of names, or the name of a file beside the study, got {shown(name)}. "
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
            raise ParameterError(f'{where}, pair {number}: expected two names, ["a", "b"], got {shown(row)}.')
        left, right = (name_of(name, f"{where}, pair {number}") for name in row)
        if left == right:
            raise ParameterError(f"{where}, pair {number}: a node is no pair with itself ({left!r}). Drop it.")
        pairs.append((left, right))
    return tuple(pairs)
