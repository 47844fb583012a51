"""What a study asks of this site, in words, section by section: for the prompt that approves it, and for its page."""

import difflib
from dataclasses import dataclass
from math import exp

from silograph._util.terminal import lines_of
from silograph.errors import ParameterError
from silograph.federation.site.approvals import Approvals
from silograph.federation.site.contact import shown_minute
from silograph.federation.site.data import SiteData
from silograph.federation.site.groups import members_of
from silograph.federation.site.leaving import GRAPHS, fields_up, group_words, promises, words_of
from silograph.federation.site.ledger import Comparison
from silograph.federation.site.settings import SiteSettings
from silograph.federation.study_file import StudyFile, pairs_of
from silograph.privacy.settings import OPEN, Privacy

MOST_SHOWN = 5  # earlier versions of the table
METHODS = {  # what a method does, for people who do not compute
    "exact": "each silo's graph is drawn to a consensus that all share, to the exact optimum",
    "oneshot": "one sum is opened, from which the consensus is learned; all that follows is computed at home",
    "independent": "each silo's graph is learned for itself",
    "pooled": "one graph is learned for all, as if their data lay in one table",
    "fedavg": "all silos improve one graph together, step by step",
    "fedprox": "all silos improve one graph together, step by step",
    **dict.fromkeys(
        ("algorithm1", "ditto", "mrmtl"), "each silo's graph and a consensus are improved together, step by step"
    ),
}
OTHER_METHOD = "no method of silograph's own: ask what it does"


@dataclass(frozen=True, slots=True)
class Listing:
    """A text that is shown as it is, line by line."""

    text: str
    difference: bool = False  # whether lines begin with + and -


Said = str | tuple[str, str] | Listing  # a sentence; a name and what it means; a text as it is


def noise(privacy: Privacy) -> str:
    """What is added to numbers that leave, and what that promises."""
    if privacy.epsilon is None or privacy.delta is None:
        return "none: what is told is told as it is, and no ε bounds what it shows of a person"
    factor = f"{exp(min(privacy.epsilon, 700)):.3g}"
    return (
        f"ε = {privacy.epsilon:g}, δ = {privacy.delta:g}: another {privacy.unit} in the place of one makes a result at "
        f"most {factor} times as likely, but for a chance of {privacy.delta:g}"
    )


def difference(approvals: Approvals, study: StudyFile) -> list[Said]:
    """The study against the one approved last."""
    last = next((each for each in reversed(approvals.approved())), None)
    if last is None:
        return ["No other study is approved to compare it with."]
    about = f"{last.name!r}, {last.sha}, approved at {shown_minute(last.when)}"
    if last.sha == study.sha256:
        return [f"It is, to the byte, the study that was approved last ({about})."]
    try:
        text = approvals.find(last.sha).read_bytes()
    except ParameterError:
        return [f"The text of the study approved last ({about}) is not kept any more: nothing to compare with."]
    before, now = (lines_of(one.decode()) for one in (text, study.text))
    lines = difflib.unified_diff(before, now, "approved last", "this study", lineterm="")
    return [f"Against the study approved last ({about}):", Listing("\n".join(lines), difference=True)]


def takes_part(study: StudyFile) -> str:
    """Which sites, and how many at least."""
    policy = study.policy
    if study.sites is not None:
        needed = policy.needed(len(study.sites))
        return f"{', '.join(study.sites)}; at least {needed} of these {len(study.sites)} take part"
    sites = "not named: any that this site was invited with, or has pinned since; "
    return sites + ("how many is not promised" if policy.quorum is None else f"at least {policy.quorum}")


def terms(settings: SiteSettings, study: StudyFile, data: SiteData) -> list[Said]:
    """How it is learned, on what, and with whom."""
    pairs, policy = pairs_of(study, study.nodes or data.names), study.policy
    every = pairs.n_nodes * (pairs.n_nodes - 1) // 2
    scale = "true: correlations leave, not amplitudes" if study.standardize else "false: numbers in your units leave"
    if study.settings.privacy.noisy:  # rows of bounded length: neither correlations nor your units
        how = "by the study's centres and scales, then" if study.standardize else "not first; all the same,"
        scale = f"{'true' if study.standardize else 'false'}: {how} each row is brought to a length that is public"
    if study.transform == "ranks":
        scale = f"{'true' if study.standardize else 'false'}: correlations of ranks leave, nothing of your units"
    said: list[Said] = [
        ("method", f"{study.settings.method}; this site answers at most {settings.max_rounds} rounds of it"),
        ("nodes", f"{pairs.n_nodes}; {pairs.size} of {every} pairs may be edges, and are sent"),
        ("sites", takes_part(study)),
        ("quorum", f"{policy.quorum if policy.quorum is not None else 'not given'}; on_missing {policy.on_missing}"),
        ("standardize", scale),
    ]
    if study.transform == "ranks":
        said += [("transform", "ranks: of each value its rank within the table")]
    if study.scale is not None:
        said += [("scale", f"{study.scale[0]:g} to {study.scale[1]:g}: else your site refuses")]
    return said


def leaves(settings: SiteSettings, study: StudyFile, data: SiteData) -> list[Said]:
    """What leaves, by the fields of the steps, and what that means for the graph and for N."""
    setup, rounds = fields_up(study, pairs_of(study, study.nodes or data.names), n_tables=len(data.tables))
    privacy = study.settings.privacy
    shares = study.share_graphs and settings.share_graph
    reports = study.settings.report and settings.report and not privacy.masked
    sent = [name for name in rounds if name in GRAPHS]
    lines: list[Said] = ["Leaves in set-up:", *_fields(setup, privacy), "Leaves in the rounds after it:"]
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


def leaves_together(settings: SiteSettings, study: StudyFile, data: SiteData) -> list[Said]:
    """The same of a site that sends sums over its tables."""
    setup, rounds = fields_up(study, pairs_of(study, study.nodes or data.names), n_tables=len(data.tables))
    over = f"the sum over your {len(data.tables)} tables of"
    privacy = study.settings.privacy
    lines: list[Said] = [f"Leaves in set-up, {over}:", *_fields(setup, privacy, several=True)]
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


def _groups(settings: SiteSettings, study: StudyFile, data: SiteData) -> list[Said]:
    """The sums per group, and what they tell of one patient."""
    if study.groups is None:
        return []
    sizes = [len(some) for some in members_of(study, data, settings)]
    words = group_words(study.groups, sizes)
    first, second = study.groups
    return [
        f"Leaves at the end, once, of your tables that {settings.groups} calls {first!r} and {second!r}, as they are:",
        *words.items(),
        f"No group has fewer than {settings.min_tables} tables. Where one or two tables of a group alone have an edge, "
        "these sums tell its weights, though not whose they are; where none has it, that none has. Whoever knows all "
        "tables of a group but one can work out that one's graph.",
        "Which table is in which group stays here. A label that changes is a change of the data: approve it anew.",
    ]


def _fields(
    names: tuple[str, ...], privacy: Privacy = OPEN, *, words: str | None = None, several: bool = False
) -> list[Said]:
    found = words_of(names, privacy, several=several)
    return [(name, words or text) for name, text in found.items()]


def table(
    approvals: Approvals, study: StudyFile, data: SiteData, comparison: Comparison, settings: SiteSettings
) -> list[str]:
    """The version of the tables that the approval is for, against those that were answered for."""
    lines = [size(data, comparison)]
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
    if (shown := objection(comparison, settings, study)) is not None:
        lines += [f"THE DIFFERENCE OF THE ANSWERS SHOWS THE CHANGED {comparison.unit.upper()}S: {shown}."]
    return [*lines, f"The approval holds for this version of the table{'s' * data.several} and no other."]


def objection(comparison: Comparison, settings: SiteSettings, study: StudyFile) -> str | None:
    """Which rows or tables differences of answers show; with noise, none."""
    return None if study.settings.privacy.noisy else comparison.objection(settings)


def size(data: SiteData, comparison: Comparison) -> str:
    """The version of the data, and how many they are."""
    if not data.several:
        return f"Table: version {data.version}, {comparison.size} rows of {len(data.names)} nodes."
    n_rows = sum(chunk.shape[0] for signals in data.signals() for chunk in signals.chunks(gaps=True))
    return f"{comparison.size} tables: version {data.version}, {n_rows} rows together of {len(data.names)} nodes."
