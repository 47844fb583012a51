"""A site's settings: its data and the limits that no coordinator can move, in `site.toml`, by its own people."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from silograph._util.files import make_folder, write_text
from silograph.errors import OutputError, ParameterError
from silograph.methods.common.registry import built_in

FILE = "site.toml"
METHODS = built_in()
SECTIONS = {
    "": ("name", "federation", "server", "data"),
    "table": ("drop", "key", "header"),
    "limits": ("min_samples", "max_rounds", "methods", "report", "share_graph", "approve_all"),
}
TEXT = """\
# The settings of this site. Only its own people write this file; the coordinator can neither read nor change it.
# It is read when a study begins: changes hold from the next one on.

# Who we are, in which federation, and the coordinator's name as its certificate says it
name = {name}
federation = {federation}
server = {server}

# The table of signals: one column per node, one row per sample. From this folder, or a whole path.
data = {data}

[table]
# Columns that are no nodes, such as ["age", "scanner"]
drop = {drop}
# The array to take of an .npz file that holds several
{key}
# Whether the first row holds the names of the nodes; left out: silograph looks
{header}

[limits]
# Take part only with at least this many samples: of few, what is sent tells more of each
min_samples = {min_samples}
# Answer at most this many rounds of an approved study, all its runs together
max_rounds = {max_rounds}
# Methods that a study may use; take out what you do not want
methods = {methods}
# Whether our number of samples and edges, our distance and our contribution may be told singly
report = {report}
# Whether our learned graph may be sent to the coordinator, when a study asks for it
share_graph = {share_graph}
# Answer every study within these limits without approval by hand: for demonstrations and trusted consortia
approve_all = {approve_all}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSettings:
    """What a site has, and how far it goes."""

    name: str
    federation: str
    server: str  # the coordinator's name, as its certificate says it
    data: Path  # from the site's folder, or a whole path
    drop: tuple[str, ...] = ()
    key: str | None = None
    header: bool | None = None  # None: look
    min_samples: int = 20
    max_rounds: int = 1000  # of an approved study, all its runs together
    methods: tuple[str, ...] = METHODS
    report: bool = True  # whether this site's own numbers may be told singly
    share_graph: bool = True  # whether this site's graph may be sent, when a study asks for it
    approve_all: bool = False

    def __post_init__(self) -> None:
        for name in ("name", "federation", "server"):
            _check_text(name, getattr(self, name))
        _check_text("data", str(self.data))
        if self.key is not None:
            _check_text("key", self.key)
        _check_list("drop", self.drop)
        _check_list("methods", self.methods)
        for method in self.methods:
            if method not in METHODS:
                raise ParameterError(f"methods: {method!r} does not exist. Write some of: {', '.join(METHODS)}.")
        for name in ("min_samples", "max_rounds"):
            _check_count(name, getattr(self, name))
        for name in ("report", "share_graph", "approve_all", *(["header"] if self.header is not None else [])):
            _check_switch(name, getattr(self, name))

    def data_in(self, folder: Path) -> Path:
        """Where the table is, for a site in this folder."""
        return folder / self.data


def read_site(folder: Path) -> SiteSettings:
    """The settings in the site's folder."""
    path = folder / FILE
    found = _read(path)
    try:
        return SiteSettings(**_arguments(found))
    except ParameterError as error:
        raise ParameterError(f"{path}, {error}") from error


def write_site(folder: Path, settings: SiteSettings) -> Path:
    """Write the settings down, once: afterwards the file belongs to the site's people."""
    path = folder / FILE
    if path.exists():
        raise OutputError(f"{path}: is there already. Edit it by hand, or choose another folder.")
    make_folder(folder)
    values = {field.name: _toml(getattr(settings, field.name)) for field in fields(settings)}
    values["key"] = '# key = "signals"' if settings.key is None else f"key = {values['key']}"
    values["header"] = "# header = true" if settings.header is None else f"header = {values['header']}"
    return write_text(path, TEXT.format(**values))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))  # some editors of Windows put a mark in front
    except OSError as error:
        raise ParameterError(
            f"{path}: cannot be read ({error.strerror}). Name the folder of a site: one that holds {FILE}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise ParameterError(
            f"{path}: is not TOML ({error}). Write text as \"text\", and a path with \\ in single quotes: 'C:\\data'."
        ) from error


def _arguments(found: Mapping[str, Any]) -> dict[str, Any]:
    """The file's keys, each from its own section, as the settings take them."""
    known = {**dict.fromkeys(SECTIONS[""]), "table": None, "limits": None}
    _check_known(found, known, "at the top of the file")
    arguments = {name: value for name, value in found.items() if name not in SECTIONS}
    for section in ("table", "limits"):
        values = found.get(section, {})
        if not isinstance(values, dict):
            raise ParameterError(
                f"{section}: expected a section, got {values!r}. Write [{section}] on a line of its own."
            )
        _check_known(values, SECTIONS[section], f"in [{section}]")
        arguments |= values
    for field in fields(SiteSettings):
        if field.default is MISSING and field.name not in arguments:
            raise ParameterError(f'{field.name}: is missing. Write {field.name} = "…" at the top of the file.')
    _check_text("data", arguments["data"])
    lists = {name: tuple(value) for name, value in arguments.items() if isinstance(value, list)}
    return arguments | lists | {"data": Path(arguments["data"])}


def _check_known(found: Mapping[str, Any], known: Any, where: str) -> None:
    for name in found:
        home = next((f"[{section}]" for section in ("table", "limits") if name in SECTIONS[section]), None)
        if name not in known and home is not None:
            raise ParameterError(f"{name}: stands {where}. Move it below the line {home}.")
        if name not in known:
            raise ParameterError(f"{name}: no such setting {where}. Expected {', '.join(known)}. Correct or remove it.")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ParameterError(f'{name}: expected text, got {value!r}. Write {name} = "…".')
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(f"{name}: {value!r} has characters that no text file can hold. Rename it.") from error


def _check_list(name: str, value: object) -> None:
    if not isinstance(value, tuple):
        raise ParameterError(f'{name}: expected a list, got {value!r}. Write {name} = ["…", "…"], or [] for none.')
    for item in value:
        if not isinstance(item, str):
            raise ParameterError(f'{name}: expected a list of texts, got {item!r} in it. Write it as "…".')
        if item:
            _check_text(name, item)


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ParameterError(f"{name}: expected a whole number ≥ 0, got {value!r}. Write one, such as {name} = 100.")


def _check_switch(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ParameterError(f"{name}: expected true or false, got {value!r}. Write {name} = true, without quotes.")


def _toml(value: object) -> str:
    """A value as TOML writes it, which is as JSON does but for one character."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool | int):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
