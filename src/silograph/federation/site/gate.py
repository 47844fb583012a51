"""Whether a study may be answered for the table as it is now: people have approved just this study for just this table.

Where site.toml says `approve_all`, nobody needs to, unless the table has changed by so little that its answers would
show the rows that changed.

And whether it may be answered at all, given what was opened before: the budget.
"""

from collections.abc import Sequence
from dataclasses import replace

from silograph.errors import SignalError
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.approvals import MOST_PENDING, Approvals
from silograph.federation.site.budget import Budget
from silograph.federation.site.data import Fingerprint, SiteData, look_at_data
from silograph.federation.site.groups import members_of
from silograph.federation.site.ledger import Ledger, Reading
from silograph.federation.site.openings import Opening
from silograph.federation.site.persons import units_of_one
from silograph.federation.site.settings import SiteSettings
from silograph.federation.site.spending import is_known, opening_of
from silograph.federation.study_file import StudyFile

FULL = (
    f"{MOST_PENDING} studies wait already, so it is not kept: clear the list with "
    "`silograph site approve HASH --reject` or `--reject-all`"
)


class Gate:
    """What lets a study pass at one site."""

    def __init__(self, folder: SiteFolder, settings: SiteSettings) -> None:
        self._folder, self._settings = folder, settings
        self._approvals, self.ledger = Approvals(folder.path), Ledger(folder.path)
        self.budget, self._charged = Budget(folder.path), set[Opening]()
        self._known: Fingerprint | None = None  # of the files, so that they are not read for each request

    def look(self) -> SiteData:
        """The data as they are now."""
        data = look_at_data(self._settings, self._folder.path, self._known)
        self._known = data.known
        return data

    def check_study(self, study: StudyFile, asked_by: str) -> None:
        """Refuse a study that nobody approved, before the table is looked at."""
        if not self._settings.approve_all and self._approvals.get(study.sha256) is None:
            self._refuse(study, asked_by, "nobody has approved it")

    def check_table(self, study: StudyFile, nodes: Sequence[str], asked_by: str, *, before: str | None) -> SiteData:
        """Refuse tables that were not approved, or differ too little from those answered before; the site's data.

        `before` is the version that the run began with: with another one, no approval lets it go on.
        """
        data = self.look()
        # First: no approval mends a table with others
        data.check_nodes(nodes, self._settings.name, missing_nodes=study.settings.missing_nodes)
        members_of(study, data, self._settings)  # nor one with too few in a group
        if before not in (None, data.version):
            raise Refused("data-changed", f"{data.place}: has changed since the run began")
        approval = self._approvals.get(study.sha256)
        approved = approval is not None and approval.table == data.version
        if not approved and not self._settings.approve_all:
            was = "" if approval is None else f"; it was {approval.table}"
            self._refuse(study, asked_by, f"the table has changed, to version {data.version}{was}: approve it anew")
        try:
            self.ledger.rows(data, Reading.of(study))  # they must be written down before an answer
        except SignalError as error:
            raise Refused("data", f"{data.place}: {error}") from error
        self.check_difference(study, asked_by, data)
        return data

    def check_difference(self, study: StudyFile, asked_by: str, data: SiteData) -> None:
        """Refuse a version that differs too little from those answered before, unless people approved it despite that.

        It is asked when a run begins and again before the first answer: meanwhile, others may have been answered.
        Answers with noise hide every row, whatever they are compared with: the budget counts these.
        """
        if study.settings.privacy.noisy:
            return
        version, groups = data.version, members_of(study, data, self._settings)
        comparison = self.ledger.compare_version(Reading.of(study).version(version), groups)
        objection = comparison.objection(self._settings)
        if objection is not None and not self._despite(study, version):
            cure = "to answer all the same, approve it with --despite-difference"
            self._refuse(study, asked_by, f"the table has changed, to version {version}: {objection}; {cure}")

    def check_budget(self, study: StudyFile, data: SiteData, sites: Sequence[str], asked_by: str) -> None:
        """Refuse what the site's limits on all studies together do not allow, before anything is computed."""
        opening, despite = self._opening(study, data, sites), self._despite(study, data.version)
        try:
            self.budget.check(opening, self._settings, despite=despite)
        except Refused as refusal:
            if refusal.code == "cohort":  # people may read it, and approve it nonetheless
                self._approvals.note_pending(study.sha256, study.text.decode(), asked_by=asked_by)
            raise

    def note(self, study: StudyFile, data: SiteData, sites: Sequence[str], run: str, *, draw: str = "") -> None:
        """Write down that a round of a run is about to be answered, and what it opens: whatever becomes of the run.

        `draw` names the noise that is in the answer, where it is kept under a name.
        """
        opening = replace(self._opening(study, data, sites), draw=draw)
        if opening not in self._charged:  # first: the ledger of an earlier silograph is known by having no budget
            self._check_draw(study, opening)
            despite = self._despite(study, data.version)
            self.budget.charge(opening, self._settings, run=run, despite=despite)
            self._charged.add(opening)
        if not opening.noisy:
            groups = members_of(study, data, self._settings)
            self.ledger.note(opening.version, study=study.sha256, run=run, groups=groups)

    def _check_draw(self, study: StudyFile, opening: Opening) -> None:
        """One approval is of one draw of noise: else a site that says its data changed would have ours told again."""
        approval = self._approvals.get(study.sha256)
        if not opening.noisy or self._settings.approve_all or approval is None:
            return
        since = [line.opening for line in self.budget.lines() if line.time > approval.when]
        same = [one for one in since if one.key[:3] == opening.key[:3]]
        if same and not is_known(opening, same):
            why = "it was answered with other noise: data of another site changed, or noise was lost; approve it anew"
            self._refuse(study, self._settings.server, why)

    def _opening(self, study: StudyFile, data: SiteData, sites: Sequence[str]) -> Opening:
        most = units_of_one(self._folder, self._settings, data, study)
        return opening_of(study, Reading.of(study).version(data.version), sites, most=most)

    def _despite(self, study: StudyFile, version: str) -> bool:
        """Whether people approved it although the difference of answers shows somebody."""
        approval = self._approvals.get(study.sha256)
        return approval is not None and approval.table == version and approval.despite

    def check_running(self, study: StudyFile, version: str) -> None:
        """Refuse to go on with a run whose approval was taken back, or given anew for another table."""
        approval = self._approvals.get(study.sha256)
        if not self._settings.approve_all and (approval is None or approval.table != version):
            raise Refused("revoked", f"study {study.name!r}, {study.sha256}, table version {version}")

    def _refuse(self, study: StudyFile, asked_by: str, why: str) -> None:
        waits = self._approvals.note_pending(study.sha256, study.text.decode(), asked_by=asked_by)
        raise Refused("unapproved", f"study {study.sha256}: {why if waits else f'{why}; {FULL}'}")
