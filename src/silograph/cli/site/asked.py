"""A study that asks for an approval, beside what this site has: looked at once, and told in sections.

The prompt of `silograph site approve` and its page say the same, as both are made of these.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from silograph._util.checks import list_names
from silograph.analysis.doubts import Doubt
from silograph.cli.site import asked_sections as sections
from silograph.cli.site.budget import read_lines, would_spend
from silograph.errors import SilosError
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.approvals import Approvals, check_readable
from silograph.federation.site.data import SiteData, look_at_data
from silograph.federation.site.doubts import doubts_at_home
from silograph.federation.site.groups import members_of
from silograph.federation.site.leaving import weak_promises
from silograph.federation.site.ledger import Comparison, Ledger, Reading
from silograph.federation.site.openings import Opening
from silograph.federation.site.persons import units_of_one
from silograph.federation.site.pins import describe_newcomers, describe_pins
from silograph.federation.site.settings import SiteSettings, read_site
from silograph.federation.site.spending import opening_of, other_cohort, over_budget
from silograph.federation.study_file import StudyFile, parse_study


@dataclass(frozen=True, kw_only=True)
class AskedStudy:
    """A study, and all that its approval is to be thought about with."""

    home: Path
    settings: SiteSettings
    study: StudyFile
    data: SiteData
    comparison: Comparison  # with versions of the data that were answered for
    doubts: tuple[Doubt, ...]
    opening: Opening  # what it would open
    earlier: tuple[Opening, ...]

    @cached_property
    def approvals(self) -> Approvals:
        """What was approved here."""
        return Approvals(self.home)

    # --- in sections --------------------------------------------------------------------------------------------------

    def in_short(self) -> list[sections.Said]:
        """What it asks, for people who do not compute."""
        settings, privacy = self.study.settings, self.study.settings.privacy
        rounds = "" if settings.rounds is None else f"; the study asks for {settings.rounds}"
        n_nodes = len(self.study.nodes or self.data.names)
        return [
            ("asks for", f"a graph of {n_nodes} nodes: which of them go together, at each site and in what all share"),
            ("method", f"{settings.method}: {sections.METHODS.get(settings.method, sections.OTHER_METHOD)}"),
            (
                "sums",
                "masked: the coordinator learns the sum over all sites, and not this site's part of it"
                if privacy.masked
                else "open: the coordinator sees this site's numbers before it adds them to those of others",
            ),
            ("noise", sections.noise(privacy)),
            ("takes part", sections.takes_part(self.study)),
            ("rounds", f"at most {self.settings.max_rounds} (max_rounds in site.toml){rounds}"),
            ("your data", sections.size(self.data, self.comparison)),
            *(("your graph", text) for text in self.leaves() if isinstance(text, str) and " graph" in text[:10]),
        ]

    def difference(self) -> list[sections.Said]:
        """The study against the one approved last."""
        return sections.difference(self.approvals, self.study)

    def terms(self) -> list[sections.Said]:
        """How it is learned, and with whom."""
        return sections.terms(self.settings, self.study, self.data)

    def leaves(self) -> list[sections.Said]:
        """What leaves, field by field."""
        return (sections.leaves_together if self.data.several else sections.leaves)(
            self.settings, self.study, self.data
        )

    def keys(self) -> list[sections.Said]:
        """Whose keys the study names, and whether they are pinned here."""
        return list(describe_pins(self.home, self.study))

    def table(self) -> list[sections.Said]:
        """The version of the data that an approval would be for, against those that were answered for."""
        return list(sections.table(self.approvals, self.study, self.data, self.comparison, self.settings))

    def spends(self) -> list[sections.Said]:
        """What it adds to the budget, and what is left then."""
        return list(would_spend(self.opening, self.earlier, self.settings))

    def twice(self) -> list[str]:
        """What to look at twice."""
        weak = weak_promises(self.study, self.comparison.size)
        lacking = _lacking(self.home, self.data, self.study)
        return [*describe_newcomers(self.home, self.study), *lacking, *weak, *(doubt.text for doubt in self.doubts)]

    # --- what is in the way -------------------------------------------------------------------------------------------

    @property
    def shows_rows(self) -> str | None:
        """Which rows or tables differences of answers show."""
        return sections.objection(self.comparison, self.settings, self.study)

    @property
    def shows_sites(self) -> str | None:
        """Which sites differences of masked sums show."""
        return other_cohort(self.opening, self.earlier)

    def hindrance(self, *, despite: bool) -> str | None:
        """Why it cannot be approved; `despite`: people want to, although differences show somebody."""
        if (limit := over_budget(self.opening, self.earlier, self.settings)) is not None:
            return f"{limit}."
        if (rows := self.shows_rows) is not None and not despite:
            return (
                f"{rows}. If you want these {self.comparison.unit}s to be shown, add --despite-difference; "
                "otherwise wait until more have changed, or use the version that was answered before."
            )
        if (sites := self.shows_sites) is not None and not despite:
            return (
                f"{sites}. If you want these sites to be shown, add --despite-difference; otherwise ask for "
                "a study with the same sites, or with noise."
            )
        return None


def look_at_study(home: Path, study: str) -> AskedStudy:
    """A study, by its file or its SHA-256, beside the data as they are now."""
    settings = read_site(home)
    path = Path(study) if Path(study).is_file() else Approvals(home).find(study)
    read = parse_study(path.read_bytes(), source=str(path))
    check_readable(read.sha256, read.text.decode())
    data, comparison = _look_at(home, settings, read)
    doubts = doubts_at_home(settings, data, read)
    opening, earlier = _would_open(home, settings, read, data)
    return AskedStudy(
        home=home,
        settings=settings,
        study=read,
        data=data,
        comparison=comparison,
        doubts=doubts,
        opening=opening,
        earlier=tuple(earlier),
    )


def _look_at(home: Path, settings: SiteSettings, study: StudyFile) -> tuple[SiteData, Comparison]:
    try:
        data = look_at_data(settings, home)
        data.check_nodes(study.nodes or data.names, settings.name, missing_nodes=study.settings.missing_nodes)
        return data, Ledger(home).compare(data, Reading.of(study), members_of(study, data, settings))
    except Refused as error:
        raise SilosError(
            f"{error.detail} An approval holds for one version of the table, so it is read first."
        ) from error


def _would_open(home: Path, settings: SiteSettings, study: StudyFile, data: SiteData) -> tuple[Opening, list[Opening]]:
    """What the study would open, and what was opened before. Where it names no sites, those that took part before."""
    earlier = [line.opening for line in read_lines(home)]
    version = Reading.of(study).version(data.version)
    before = (one.cohort for one in earlier if (one.study, one.version) == (study.sha256, version))
    try:
        most = units_of_one(SiteFolder(home), settings, data, study)
    except Refused as error:
        raise SilosError(error.detail) from error
    return opening_of(study, version, study.sites or next(before, ()), most=most), earlier


def _lacking(home: Path, data: SiteData, study: StudyFile) -> list[str]:
    """Of a study whose nodes are in a file that only the coordinator has, what is likely to be refused."""
    path = SiteFolder(home).nodes
    if study.nodes is not None or study.settings.may_lack_nodes or not path.exists():
        return []
    nodes = path.read_text(encoding="utf-8").splitlines()
    lacking = [name for name in nodes if any(name not in names for names in data.nodes)]
    if not lacking:
        return []
    return [
        f"Nodes of the federation that tables here lack: {list_names(lacking)}. If the study has them, you refuse it."
    ]
