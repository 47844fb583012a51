"""A site's settings: its data and the limits that no coordinator can move, in `site.toml`, by its own people."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from silograph._util.checks import check_positive
from silograph._util.documents import check_keys, fill, fit_value, parse_toml, placing_errors, read_bytes, show
from silograph._util.files import make_folder, write_text
from silograph.data.folders import is_one_file
from silograph.errors import OutputError, ParameterError
from silograph.federation.folders import SiteFolder
from silograph.methods.common.registry import built_in, check_method

METHODS = built_in()
FEW_SAMPLES = 20  # however few the nodes
MOST_EPSILON = 10.0  # of all studies with noise together, unless people write more: above, noise hides nobody
LARGEST_SETTINGS = 1_000_000  # bytes
SECTIONS = {
    "table": ("drop", "key", "header", "keep_rows", "person", "groups", "groups_column"),
    "limits": (
        "min_samples",
        "min_new_samples",
        "min_tables",
        "min_sites",
        "epsilon_total",
        "delta_total",
        "sums_total",
        "max_silos",
        "max_rounds",
        "max_rounds_table",
        "max_local_steps",
        "methods",
        "report",
        "share_graph",
        "approve_all",
    ),
    "notify": ("on_pending",),
}
TOP_KEYS = ("name", "federation", "server", "data")
HOMES = {"at the top of the file": TOP_KEYS, **{f"below the line [{name}]": keys for name, keys in SECTIONS.items()}}
HINTS = {  # what a line that is left out would look like
    "key": '"signals"',
    "header": "true",
    "keep_rows": '"good"',
    "person": '"subject"',
    "groups": '"people.csv"',
    "groups_column": '"diagnosis"',
    "min_samples": "100",
    "epsilon_total": "1.0",
    "sums_total": "1",
}
TEMPLATE = """\
# The settings of this site. Only its own people write this file; the coordinator can neither read nor change it.
# It is read when a study begins: changes hold from the next one on.

# Who we are, in which federation, and the coordinator's name as its certificate says it
name = {name}
federation = {federation}
server = {server}

# The table of signals: one column per node, one row per sample. From this folder, or a whole path.
# Of several patients: a folder, a pattern such as "tables/*.csv", or a list of these. Then each table is a silo, and
# what leaves is the sum over all of them.
data = {data}

[table]
# Columns that are no nodes, such as ["age", "scanner"]
drop = {drop}
# The array to take of an .npz file that holds several
{key}
# Whether the first row holds the names of the nodes; left out: silograph looks
{header}
# A column that says which rows to learn from (true, 1, yes) and which not, such as one of scrubbed volumes
{keep_rows}
# A column that names persons, where one may have several rows or tables: noise is then counted for the whole person
{person}
# Of several tables: a file that says which of them are of which group, one row for each, its name first. From this
# folder, or a whole path. What it says stays here; studies may ask for sums over each group
{groups}
# The column of groups in that file; left out: the only one beside the names
{groups_column}

[limits]
# Take part only with at least this many samples: of few, a sum says more of each. Left out: as many as nodes, or 20
{min_samples}
# Of a table that has changed since it was answered for: rows that came or went are none, or at least this many
min_new_samples = {min_new_samples}
# Of several tables: take part only with at least this many; and those that came or went are none, or at least this many
min_tables = {min_tables}
# Take part only together with others, at least this many sites in all. Of two, each can work out the other's numbers
min_sites = {min_sites}
# Answer only studies with noise (epsilon), and only until all together amount to this epsilon, over all versions of the
# data. Left out: studies without noise, too, and those with noise until they amount to 10. See `silograph site budget`
{epsilon_total}
# The delta at which that total is reckoned
delta_total = {delta_total}
# Answer only so many studies without noise, ever, over all versions of the data. Left out: no limit
{sums_total}
# Take part only if all sites together have at most this many tables: the more they are, the weaker is what we can check
max_silos = {max_silos}
# Answer at most this many rounds of an approved study, all its runs together
max_rounds = {max_rounds}
# Answer at most this many rounds of all studies together, whoever approved them; raise it, knowingly, when used up
max_rounds_table = {max_rounds_table}
# Compute at most this many local steps in a round, where a study says how many
max_local_steps = {max_local_steps}
# Methods that a study may use. With coupling 0 "exact" is "independent", with all data alike "pooled": allow them, too
methods = {methods}
# Whether our number of samples and edges, our distance and our contribution may be reported
report = {report}
# Whether our learned graph may be sent to the coordinator, when a study asks for it
share_graph = {share_graph}
# Answer every study within these limits without approval by hand: for demonstrations and trusted consortia
approve_all = {approve_all}

[notify]
# A program to call when a study begins to wait for approval, with its arguments, such as
# ["/usr/bin/mail", "-s", "A study waits", "steward@example.org"]. It gets the study's name and hash on its input
on_pending = {on_pending}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSettings:
    """A site's data and limits."""

    name: str
    federation: str
    server: str  # the coordinator's name, as its certificate says it
    data: Path | tuple[Path, ...]  # from the site's folder, or whole paths; of files, folders or patterns
    drop: tuple[str, ...] = ()
    key: str | None = None
    header: bool | None = None  # None: look
    keep_rows: str | None = None  # a column that says which rows count; None: all
    person: str | None = None  # a column that names persons; None: every row, or table, is a person's only one
    groups: Path | None = None  # a table with the group of each of several; from the site's folder, or a whole path
    groups_column: str | None = None  # None: its only column beside the names
    min_samples: int | None = None  # None: see `least_samples`
    min_new_samples: int = 20  # fewest rows that a changed table may tell apart from those answered before
    min_tables: int = 5  # of several: fewest to answer for, and fewest that a change may tell apart
    min_sites: int = 2  # never less: the sum over one site is that site's own
    epsilon_total: float | None = None  # of all openings together; None: studies without noise may be (`noise_limit`)
    delta_total: float = 1e-5
    sums_total: int | None = None  # openings without noise; None: no limit
    max_silos: int = 1000  # of all sites together
    max_rounds: int = 1000  # of an approved study, all its runs together
    max_rounds_table: int = 10_000  # of all studies together
    max_local_steps: int = 100  # in a round
    methods: tuple[str, ...] = METHODS
    report: bool = True  # whether this site may report its own numbers
    share_graph: bool = True  # whether this site's graph may be sent, when a study asks for it
    approve_all: bool = False
    on_pending: tuple[str, ...] = ()  # a program and its arguments

    def __post_init__(self) -> None:
        hints = get_type_hints(SiteSettings)
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is not None:
                fit_value(value, hints[field.name], field.name)
        for number, method in enumerate(self.methods, start=1):
            check_method(method, f"methods, entry {number}")
        if self.data == ():
            raise ParameterError('data: expected text, or a list of at least one, got an empty list. Write "tables".')
        least = dict.fromkeys(
            ("min_samples", "min_new_samples", "sums_total", "max_rounds", "max_rounds_table", "max_local_steps"), 0
        )
        for name, bound in (least | {"min_sites": 2, "min_tables": 1, "max_silos": 2}).items():
            if (value := getattr(self, name)) is not None and value < bound:
                raise ParameterError(f"{name}: expected a whole number ≥ {bound}, got {value}. Write one, such as 100.")
        if self.groups_column is not None and self.groups is None:
            raise ParameterError(
                'groups_column: is of the table that groups names, and there is none. Add groups = "…".'
            )
        if self.epsilon_total is not None:
            check_positive("epsilon_total", self.epsilon_total)
        if not 0 < self.delta_total < 1:
            raise ParameterError(f"delta_total: expected a number between 0 and 1, got {self.delta_total}. Write 1e-5.")

    @property
    def noise_limit(self) -> float:
        """What all studies with noise may amount to: rules for those without it do not hold for them."""
        return MOST_EPSILON if self.epsilon_total is None else self.epsilon_total

    def least_samples(self, n_nodes: int) -> int:
        """How many samples a table of so many nodes must have. Fewer than nodes are known but for a rotation."""
        return max(n_nodes, FEW_SAMPLES) if self.min_samples is None else self.min_samples

    def data_in(self, folder: Path) -> list[Path]:
        """Where the tables are, for a site in this folder."""
        return [folder / place for place in (self.data if isinstance(self.data, tuple) else (self.data,))]

    def has_several(self, folder: Path) -> bool:
        """Whether the site has a folder, a pattern or a list of tables: even if it holds one, it may soon hold more."""
        return isinstance(self.data, tuple) or not is_one_file(folder / self.data)

    @property
    def data_shown(self) -> str:
        """What messages for the site's own people call its data."""
        return ", ".join(map(str, self.data)) if isinstance(self.data, tuple) else str(self.data)


def read_site(folder: Path) -> SiteSettings:
    """The settings in the site's folder."""
    path = SiteFolder(folder).settings
    cure = "Write text as \"text\", and a path with \\ in single quotes: 'C:\\data'."
    data = read_bytes(path, most=LARGEST_SETTINGS, cure=f"Name the folder of a site: one that holds {path.name}.")
    found = parse_toml(data, source=str(path), cure=cure)
    with placing_errors(f"{path}, "):
        return fill(SiteSettings, _flatten(found), homes=HOMES)


def write_site(folder: Path, settings: SiteSettings) -> Path:
    """Write the settings down, once: afterwards the file belongs to the site's people."""
    path = SiteFolder(folder).settings
    if path.exists():
        raise OutputError(f"{path}: is there already. Edit it by hand, or choose another folder.")
    make_folder(folder)
    values = {field.name: _toml(getattr(settings, field.name)) for field in fields(settings)}
    for name, hint in HINTS.items():
        values[name] = f"# {name} = {hint}" if getattr(settings, name) is None else f"{name} = {values[name]}"
    return write_text(path, TEMPLATE.format(**values))


def _flatten(found: dict[str, Any]) -> dict[str, Any]:
    """The keys of all sections in one table, once each stands in its own section."""
    check_keys(found, (*TOP_KEYS, *SECTIONS), homes=HOMES)
    values = {name: value for name, value in found.items() if name in TOP_KEYS}
    for section, keys in SECTIONS.items():
        table = found.get(section, {})
        if not isinstance(table, dict):
            raise ParameterError(
                f"{section}: expected a section, got {show(table)}. Write [{section}] on a line of its own."
            )
        with placing_errors(f"[{section}] "):
            check_keys(table, keys, homes=HOMES)
        values |= table
    return values


def _toml(value: object) -> str:
    """A value as TOML writes it, which is as JSON does but for one character."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
