"""What `silograph site approve` does: show a study and all that it lets leave, then approve, reject or revoke it."""

import difflib
from pathlib import Path

import typer

from silograph._util.checks import list_names
from silograph.cli.output import visible
from silograph.cli.site.account import say, user
from silograph.cli.site.budget import read_lines, would_spend
from silograph.errors import ParameterError, SilosError
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.approvals import Approvals, check_readable, sha_of
from silograph.federation.site.audit import AuditLog
from silograph.federation.site.data import SiteData, look_at_data
from silograph.federation.site.doubts import doubts_at_home
from silograph.federation.site.groups import members_of
from silograph.federation.site.leaving import GRAPHS, fields_up, group_words, promises, weak_promises, words_of
from silograph.federation.site.ledger import Comparison, Ledger, Reading
from silograph.federation.site.openings import Opening
from silograph.federation.site.persons import units_of_one
from silograph.federation.site.pins import Pins, describe_pins
from silograph.federation.site.settings import SiteSettings, read_site
from silograph.federation.site.spending import opening_of, other_cohort, over_budget
from silograph.federation.study_file import StudyFile, pairs_of, parse_study
from silograph.privacy.settings import OPEN, Privacy

MOST_SHOWN = 5  # earlier versions of the table


def list_studies(home: Path) -> None:
    """Print the studies that wait, and those approved."""
    approvals = Approvals(home)
    waiting, approved = approvals.pending(), approvals.approved()
    if not waiting and not approved:
        say("No study waits for approval, and none is approved.")
    for one in waiting:
        say(f"waits     {one.sha}  asked by {one.asked_by!r} at {one.when}")
        say(f"          read it: {one.path}")
        say(f"          approve: silograph site approve {one.sha}")
    for each in approved:
        rounds = approvals.rounds_used(each.sha)
        say(f"approved  {each.sha}  {each.name!r} by {each.by!r} at {each.when}, {rounds} rounds answered")
        say(f"          for the table's version {each.table}")


def approve_study(home: Path, study: str, *, yes: bool, despite: bool) -> None:
    """Show a study and what it lets leave, ask, and approve it for the table as it is now."""
    approvals, settings = Approvals(home), read_site(home)
    path = Path(study) if Path(study).is_file() else approvals.find(study)
    read = parse_study(path.read_bytes(), source=str(path))
    check_readable(read.sha256, read.text.decode())
    data, comparison = _look_at(home, settings, read)
    doubts = doubts_at_home(settings, data, read)
    opening, earlier = _would_open(home, settings, read, data)
    _show(home, settings, read, data, comparison)
    say("", *would_spend(opening, earlier, settings))
    twice = (*_lacking(home, data, read), *weak_promises(read, comparison.size), *(doubt.text for doubt in doubts))
    say(*(f"LOOK TWICE: {text}" for text in twice))
    if (limit := over_budget(opening, earlier, settings)) is not None:
        raise ParameterError(f"Not approved: {limit}.")
    rows, sites = _objection(comparison, settings, read), other_cohort(opening, earlier)
    if rows is not None and not despite:
        raise ParameterError(
            f"Not approved: {rows}. If you want these {comparison.unit}s to be shown, add --despite-difference; "
            "otherwise wait until more have changed, or use the version that was answered before."
        )
    if sites is not None and not despite:
        raise ParameterError(
            f"Not approved: {sites}. If you want these sites to be shown, add --despite-difference; otherwise ask for "
            "a study with the same sites, or with noise."
        )
    if not yes and not typer.confirm("Approve it?"):
        say("Not approved.")
        return
    despite = rows is not None or sites is not None
    detail = f"study {read.sha256} for the table's version {data.version}"
    detail += ", despite the difference" * (rows is not None) + ", despite other sites" * (sites is not None)
    detail += f"; doubts: {', '.join(doubt.kind for doubt in doubts)}" * bool(doubts)
    _log(home, "approved", detail)  # first: nothing is answered of which the log does not say who approved it
    approvals.approve(read.text, name=read.name, by=user(), table=data.version, despite=despite, fresh=True)
    say("Approved.", *_refused_still(home, read))


def _refused_still(home: Path, study: StudyFile) -> list[str]:
    """What an approval does not cure: keys that are not pinned here as the study names them."""
    other = [site for site, key in study.keys.items() if Pins(home).get(site) != key]
    if not study.settings.privacy.masked or not other:
        return []
    return [
        f"But this site refuses it (pins) until the keys of {', '.join(other)} are pinned as the study names them: see "
        "above what to do, before the run begins."
    ]


def revoke_study(home: Path, study: str) -> None:
    """Take an approval back."""
    sha = _sha_of(home, study)
    Approvals(home).revoke(sha)
    _log(home, "revoked", f"study {sha}")
    say(f"Revoked {sha}.")
    if read_site(home).approve_all:
        say("But site.toml says approve_all: the study is answered all the same. Set it to false to stop that.")


def reject_studies(home: Path, study: str | None) -> None:
    """Let one study wait no more, or all."""
    approvals = Approvals(home)
    waiting = [one.sha for one in approvals.pending()]
    shas = waiting if study is None else [_sha_of(home, study)]
    if unknown := [sha for sha in shas if sha not in waiting]:
        raise ParameterError(f"Study {unknown[0]} does not wait: there is nothing to reject.")
    for sha in shas:
        _log(home, "rejected", f"study {sha}")
    approvals.reject(*shas)
    say(f"Rejected {len(shas)}. A study that is asked for again waits again.")


def _sha_of(home: Path, study: str) -> str:
    return sha_of((Path(study) if Path(study).is_file() else Approvals(home).find(study)).read_bytes())


def _log(home: Path, what: str, detail: str) -> None:
    AuditLog(SiteFolder(home).audit_log).append({"what": what, "by": user(), "detail": detail}, durable=True)


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


# --- what is shown ----------------------------------------------------------------------------------------------------


def _show(home: Path, settings: SiteSettings, study: StudyFile, data: SiteData, comparison: Comparison) -> None:
    approvals = Approvals(home)
    leaves = _leaves_together if data.several else _leaves
    say(f"Study {study.name!r}, SHA-256 {study.sha256}", "", *_indent(study.text.decode()))
    say(*_difference(approvals, study), "", *_terms(settings, study, data), "", *leaves(settings, study, data), "")
    if keys := describe_pins(home, study):
        say(*keys, "")
    say(*_table(approvals, study, data, comparison, settings))


def _indent(text: str) -> list[str]:
    return [f"    {visible(line)}" for line in text.splitlines()]


def _difference(approvals: Approvals, study: StudyFile) -> list[str]:
    """The study against the one approved last."""
    last = next((each for each in reversed(approvals.approved())), None)
    if last is None:
        return ["", "No other study is approved to compare it with."]
    about = f"{last.name!r}, {last.sha}, approved at {last.when}"
    if last.sha == study.sha256:
        return ["", f"It is, to the byte, the study that was approved last ({about})."]
    try:
        text = approvals.find(last.sha).read_bytes()
    except ParameterError:
        return ["", f"The text of the study approved last ({about}) is not kept any more: nothing to compare with."]
    before, now = (one.decode().splitlines() for one in (text, study.text))
    lines = difflib.unified_diff(before, now, "approved last", "this study", lineterm="")
    return ["", f"Against the study approved last ({about}):", *_indent("\n".join(lines))]


def _terms(settings: SiteSettings, study: StudyFile, data: SiteData) -> list[str]:
    pairs, policy = pairs_of(study, study.nodes or data.names), study.policy
    every = pairs.n_nodes * (pairs.n_nodes - 1) // 2
    scale = "true: correlations leave, not amplitudes" if study.standardize else "false: numbers in your units leave"
    if study.settings.privacy.noisy:  # rows of bounded length: neither correlations nor your units
        how = "by the study's centres and scales, then" if study.standardize else "not first; all the same,"
        scale = f"{'true' if study.standardize else 'false'}: {how} each row is brought to a length that is public"
    if study.transform == "ranks":
        scale = f"{'true' if study.standardize else 'false'}: correlations of ranks leave, nothing of your units"
    if study.sites is not None:
        needed = policy.needed(len(study.sites))
        sites = f"{', '.join(study.sites)}; at least {needed} of these {len(study.sites)} take part"
    else:
        sites = "not named: any of the federation, also those that join later; "
        sites += "how many is not promised" if policy.quorum is None else f"at least {policy.quorum}"
    return [
        f"  method       {study.settings.method}; this site answers at most {settings.max_rounds} rounds of it",
        f"  nodes        {pairs.n_nodes}; {pairs.size} of {every} pairs may be edges, and are sent",
        f"  sites        {sites}",
        f"  quorum       {policy.quorum if policy.quorum is not None else 'not given'}; on_missing {policy.on_missing}",
        f"  standardize  {scale}",
        *(["  transform    ranks: of each value its rank within the table"] if study.transform == "ranks" else []),
        *(
            []
            if study.scale is None
            else [f"  scale        {study.scale[0]:g} to {study.scale[1]:g}: else your site refuses"]
        ),
    ]


def _leaves(settings: SiteSettings, study: StudyFile, data: SiteData) -> list[str]:
    """What leaves, by the fields of the steps, and what that means for the graph and for N."""
    setup, rounds = fields_up(study, pairs_of(study, study.nodes or data.names), n_tables=len(data.tables))
    privacy = study.settings.privacy
    shares = study.share_graphs and settings.share_graph
    reports = study.settings.report and settings.report and not privacy.masked
    sent = [name for name in rounds if name in GRAPHS]
    lines = ["Leaves in set-up:", *_fields(setup, privacy), "Leaves in the rounds after it:"]
    lines += [*_fields(rounds, privacy), *promises(study)]
    if reports:
        words = "your numbers of samples and edges, mean squared difference, distance to the consensus, contribution"
        lines += _fields(("reported",), words=words)
    if shares:
        lines += _fields(("graph",), words="your own graph, at the end")
    if sent or shares:
        when = " and ".join([*(["in the rounds"] if sent else []), *(["at the end"] if shares else [])])
        lines += [f"Your graph LEAVES this site, {when}."]
    elif privacy.masked or privacy.noisy:
        lines += ["Your graph is not sent."]
    else:
        lines += ["Your graph is not sent. Whoever has `cost` and the study can compute it, or one much like it."]
    if study.settings.method == "oneshot" and not privacy.masked:
        lines += ["The sum comes back to every site: each learns the sum of the others'; of two sites, yours."]
    if not reports and privacy == OPEN:
        lines += ["Your number of samples is not reported. That does not hide it: of rounded data, z/N gives it away."]
    return [*lines, "Stays: the rows of your table, its path, site.toml. The threat model in the docs tells the rest."]


def _leaves_together(settings: SiteSettings, study: StudyFile, data: SiteData) -> list[str]:
    """The same of a site that sends sums over its tables."""
    setup, rounds = fields_up(study, pairs_of(study, study.nodes or data.names), n_tables=len(data.tables))
    over = f"the sum over your {len(data.tables)} tables of"
    privacy = study.settings.privacy
    lines = [f"Leaves in set-up, {over}:", *_fields(setup, privacy, several=True)]
    lines += [f"Leaves in the rounds after it, {over}:", *_fields(rounds, privacy, several=True)]
    lines += [*promises(study), "Leaves besides:"]
    lines += _fields(("tables",), words=f"how many they are: {len(data.tables)}")
    if study.settings.report and settings.report and not privacy.masked:
        lines += _fields(("reported",), words="the number of samples of all your tables together, and their mean scale")
    if any(name in GRAPHS for name in rounds):
        lines += ["The SUM of your tables' graphs leaves this site, in the rounds. The graph of no table does."]
    lines += _groups(settings, study, data)
    return [
        *lines,
        *([] if privacy.noisy else ["Whoever knows all your tables but one can work out that one's part of each sum."]),
        "Stays: every table's own numbers, graph and contribution; names of patients and files; site.toml.",
    ]


def _groups(settings: SiteSettings, study: StudyFile, data: SiteData) -> list[str]:
    """The sums per group, and what they tell of one patient."""
    if study.groups is None:
        return []
    sizes = [len(some) for some in members_of(study, data, settings)]
    words = group_words(study.groups, sizes)
    first, second = study.groups
    return [
        f"Leaves at the end, once, of your tables that {settings.groups} calls {first!r} and {second!r}, as they are:",
        *(f"  {name:<15}{text}" for name, text in words.items()),
        f"No group has fewer than {settings.min_tables} tables. Where one or two tables of a group alone have an edge, "
        "these sums tell its weights, though not whose they are; where none has it, that none has. Whoever knows all "
        "tables of a group but one can work out that one's graph.",
        "Which table is in which group stays here. A label that changes is a change of the data: approve it anew.",
    ]


def _fields(
    names: tuple[str, ...], privacy: Privacy = OPEN, *, words: str | None = None, several: bool = False
) -> list[str]:
    found = words_of(names, privacy, several=several)
    return [f"  {visible(name):<13}{words or text}" for name, text in found.items()]


def _table(
    approvals: Approvals, study: StudyFile, data: SiteData, comparison: Comparison, settings: SiteSettings
) -> list[str]:
    """The version of the tables that the approval is for, against those that were answered for."""
    lines = [_size(data, comparison)]
    before = approvals.get(study.sha256)
    if before is not None:
        which = "this version" if before.table == data.version else f"version {before.table}"
        used = approvals.rounds_used(study.sha256)
        lines += [
            f"The study was approved for {which}; {used} rounds were answered, counted from 0 again if you approve."
        ]
    for change in comparison.changes[:MOST_SHOWN]:
        earlier = change.earlier
        lines += [
            f"Version {earlier.version}, {comparison.count(earlier.size)}, was answered for, last at "
            f"{earlier.last[:19]}:",
            f"  since then {comparison.count(change.added)} came, {comparison.count(change.removed)} went "
            "(changed: both).",
        ]
    if (more := len(comparison.changes) - MOST_SHOWN) > 0:
        lines += [f"{more} more versions were answered for; they differ by more."]
    if (objection := _objection(comparison, settings, study)) is not None:
        lines += [f"THE DIFFERENCE OF THE ANSWERS SHOWS THE CHANGED {comparison.unit.upper()}S: {objection}."]
    return [*lines, f"The approval holds for this version of the table{'s' * data.several} and no other."]


def _objection(comparison: Comparison, settings: SiteSettings, study: StudyFile) -> str | None:
    """Which rows or tables differences of answers show; with noise, none."""
    return None if study.settings.privacy.noisy else comparison.objection(settings)


def _size(data: SiteData, comparison: Comparison) -> str:
    if not data.several:
        return f"Table: version {data.version}, {comparison.size} rows of {len(data.names)} nodes."
    n_rows = sum(chunk.shape[0] for signals in data.signals() for chunk in signals.chunks(gaps=True))
    return f"{comparison.size} tables: version {data.version}, {n_rows} rows together of {len(data.names)} nodes."
