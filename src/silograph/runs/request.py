"""What a run is asked for: tables, and how to read and to learn from them; kept while the run is unfinished."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.checks import check_whole
from silograph._util.naming import setting
from silograph._util.plain import from_plain
from silograph.analysis.false_edges import check_threshold
from silograph.analysis.newcomers import check_newcomers
from silograph.analysis.quorum import check_quorum
from silograph.analysis.stability import check_stability
from silograph.data.bounded import RowBounds, read_public
from silograph.data.costs import MissingNodes, TableOptions
from silograph.data.folders import FoundTable, find_tables
from silograph.errors import CheckpointError, ParameterError
from silograph.local.learn import Settings
from silograph.methods.common.privacy import SETTINGS, privacy_of
from silograph.methods.common.registry import UnknownMethodError
from silograph.methods.common.settings import StudySettings
from silograph.privacy.reading import check_reading, row_bounds
from silograph.privacy.settings import OPEN, Privacy
from silograph.runs.layout import RunLayout

REQUEST_FORMAT = 5
PATHS = ("allow", "forbid", "public")
DEFAULT_STABLE = 0.9
NOISE = frozenset(SETTINGS) - {"centres", "scales"}  # settings of privacy by name; these two come from a file


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisRequest:
    """What is to be made of what is learned."""

    whole: bool = False  # keep all edges of the optimum, as between sites
    stability: int = 0  # half-samples
    stable: float | None = None  # the part of them that makes an edge stable; given, stable edges are a graph, too
    quorum: int | None = None  # silos in which an edge must be stable, for a graph of such edges
    newcomers: bool = False  # leave silos out one by one, so that newcomers can be compared with them

    def __post_init__(self) -> None:
        check_whole("stability", self.stability, least=0)
        if self.stability % 2:
            raise ParameterError(
                f"stability: half-samples come in pairs. Expected an even number, got {self.stability}."
            )
        for name in ("stable", "quorum"):
            if getattr(self, name) is not None and not self.stability:
                raise ParameterError(f"{setting(name)}: it needs half-samples. Add {setting('stability', 50)}.")
        check_threshold(self.threshold)
        if self.quorum is not None:
            check_whole("quorum", self.quorum, least=1)

    @property
    def threshold(self) -> float:
        """The part of half-samples that makes an edge stable."""
        return DEFAULT_STABLE if self.stable is None else self.stable


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnRequest:
    """Tables and settings."""

    found: tuple[FoundTable, ...]
    settings: Settings | StudySettings  # of one table, or of several
    tables: TableOptions
    asked: AnalysisRequest = AnalysisRequest()

    def __post_init__(self) -> None:
        check_reading(
            self.privacy,
            standardize=self.tables.standardize,
            transform=self.tables.transform,
            public=self.tables.public is not None or self.privacy.centres is not None,
            missing=self.tables.missing,
            precomputed=self.tables.precomputed,
        )
        if isinstance(self.settings, StudySettings):
            check_stability(self.asked.stability, self.settings, has_rows=not self.tables.precomputed)
            if self.asked.quorum is not None:
                check_quorum(self.asked.quorum, len(self.found))
            if self.asked.newcomers:
                check_newcomers(self.settings, len(self.found))
        elif self.asked.quorum is not None or self.asked.whole or self.asked.newcomers:
            name = "newcomers" if self.asked.newcomers else "whole" if self.asked.whole else "quorum"
            raise ParameterError(f"{name}: it belongs to several silos. Give more tables, or leave it out.")
        elif self.asked.stability and self.tables.precomputed:
            raise ParameterError("stability: half-samples are of rows, and precomputed distances have none.")

    @property
    def privacy(self) -> Privacy:
        """Whether what is opened carries noise."""
        return self.settings.privacy if isinstance(self.settings, StudySettings) else OPEN

    def bounds(self, nodes: Sequence[str]) -> RowBounds | None:
        """How rows are bounded, where noise is measured against them."""
        bounds = row_bounds(self.privacy, nodes)
        if bounds is None or self.tables.public is None:
            return bounds
        centres, scales = read_public(self.tables.public, nodes)
        return replace(bounds, centres=centres, scales=scales)

    @property
    def zeta(self) -> float:
        """ζ, as given or by default."""
        return self.settings.zeta if isinstance(self.settings, Settings) else self.settings.zeta_used

    @property
    def missing_nodes(self) -> MissingNodes:
        """Whether silos may lack nodes."""
        return self.settings.missing_nodes if isinstance(self.settings, StudySettings) else "error"

    def options(self, *, absolute: bool = False) -> dict[str, Any]:
        """How tables are read, as plain data."""
        options = asdict(self.tables) | {"drop": list(self.tables.drop)}
        for name in PATHS:
            if options[name] is not None:
                options[name] = str(options[name].absolute() if absolute else options[name])
        return options

    def as_data(self, checksums: Sequence[str]) -> dict[str, Any]:
        """The request as plain data, for a later resumption from anywhere."""
        return {
            "format": REQUEST_FORMAT,
            "signals": [[str(one.path.absolute()), one.name, one.site] for one in self.found],
            "sha256": list(checksums),
            "settings": asdict(self.settings),
            "tables": self.options(absolute=True),
            "asked": asdict(self.asked),
        }


def make_request(places: Sequence[Path], given: Mapping[str, Any]) -> LearnRequest:
    """A request from settings by name; raises for one that is unknown, or that would do nothing."""
    if not places:
        raise ParameterError("Give at least one table of signals, or a run to resume.")
    found = find_tables(places)
    kind: type[Settings | StudySettings] = Settings if len(found) == 1 else StudySettings
    one, several, tables, asked = (_names(of) for of in (Settings, StudySettings, TableOptions, AnalysisRequest))
    for name in given:
        if name not in one | several | tables | asked | NOISE:
            known = ", ".join(sorted(_names(kind) | tables | asked | (NOISE if kind is StudySettings else set())))
            raise ParameterError(f"{name}: no such setting. Expected some of {known}.")
        if kind is Settings and (name in NOISE or name == "public"):
            raise ParameterError(
                f"{name}: noise is for what several silos open, and a table alone opens nothing. Its graph is made of "
                "exact data. Give more tables, or leave it out."
            )
        if kind is Settings and name in several - one:
            raise ParameterError(f"{name}: it belongs to several silos. Give more tables, or leave it out.")
        if kind is StudySettings and name in one - several:
            raise ParameterError(f"{name}: it belongs to one table. Leave it out.")
    # NumPy's numbers become Python's: settings are written down
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    noise = {name: plain.pop(name) for name in NOISE & plain.keys()}
    if noise:
        plain["privacy"] = privacy_of(plain.get("method", "exact"), noise)
    return LearnRequest(
        found=tuple(found),
        settings=kind(**{name: value for name, value in plain.items() if name not in tables | asked}),
        tables=_table_options({name: value for name, value in plain.items() if name in tables}),
        asked=AnalysisRequest(**{name: value for name, value in plain.items() if name in asked}),
    )


def read_request(folder: Path) -> tuple[LearnRequest, tuple[str, ...]]:
    """The request of an unfinished run, and the checksums that its tables had."""
    layout = RunLayout(folder)
    data = layout.read_request()
    if "federation" in data:
        raise CheckpointError(f"{folder}: is a run of a federation. Go on with: {layout.resume_command()}")
    try:
        kind: type[Settings | StudySettings] = Settings if len(data["signals"]) == 1 else StudySettings
        same = data["format"] == REQUEST_FORMAT and set(data["settings"]) == _names(kind)
        if not same or set(data["tables"]) != _names(TableOptions):
            raise CheckpointError(f"{folder}: made by another version of silograph. Start the run anew.")
        request = LearnRequest(
            found=tuple(FoundTable(path=Path(path), name=name, site=site) for path, name, site in data["signals"]),
            settings=_settings(kind, data["settings"]),
            tables=_table_options(data["tables"]),
            asked=from_plain(AnalysisRequest, data["asked"]),
        )
        return request, tuple(data["sha256"])
    except UnknownMethodError as error:
        raise CheckpointError(f"{folder}: its method is not installed here ({error}). Install its package.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{layout.request}: is damaged ({error}). Start the run anew.") from error


def _settings(kind: type[Settings | StudySettings], data: dict[str, Any]) -> Settings | StudySettings:
    if kind is StudySettings:
        data = data | {"privacy": from_plain(Privacy, data["privacy"])}
    return kind(**data)


def _names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


def _table_options(given: Mapping[str, Any]) -> TableOptions:
    options = dict(given)
    for name in PATHS:
        if options.get(name) is not None:
            options[name] = Path(options[name])
    if "drop" in options:
        options["drop"] = (options["drop"],) if isinstance(options["drop"], str) else tuple(options["drop"])
    return TableOptions(**options)
