"""The checks of `silograph site doctor`: what may keep a site from taking part, each found by looking at it.

Each check returns what it found and what to do, and raises nothing for what it looks for.
"""

import importlib.metadata
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from silograph._util.checks import list_names
from silograph.errors import ProtocolError, SilographError
from silograph.federation.certificates import ASK_COORDINATOR, certificate_ends, site_warnings
from silograph.federation.fingerprints import shown_fingerprint
from silograph.federation.folders import Kit, SiteFolder
from silograph.federation.identity import read_signer
from silograph.federation.invitation import read_invitation
from silograph.federation.reach import STEPS, reach
from silograph.federation.refusals import Refused
from silograph.federation.site.address import RENEW as RENEW_ADDRESS
from silograph.federation.site.address import address_of, kit_address, used_invitation
from silograph.federation.site.approvals import Approvals
from silograph.federation.site.audit import AuditLog, entries, verify
from silograph.federation.site.budget import Budget
from silograph.federation.site.contact import FAR_OFF, Connection, read_connection, refusal, shown
from silograph.federation.site.data import look_at_data, table_options, tables_of
from silograph.federation.site.pins import Pins
from silograph.federation.site.reading import noting
from silograph.federation.site.restored import read_witness
from silograph.federation.site.settings import SiteSettings, read_site
from silograph.federation.site.spending import more_that_fit, spent_by
from silograph.federation.site.standing import last_refusal, unpinned_keys
from silograph.federation.site.unreadable import known_problem
from silograph.federation.site.whole import WholeData, whole_of

RENEW = f"Renew it: {ASK_COORDINATOR}"
LITTLE_SPACE, LEAST_SPACE = 1_000_000_000, 50_000_000  # bytes
WRONG_BY = 300.0  # seconds between two clocks
SMALL_EPSILON = 0.1  # of a study: where not even this fits, nothing is left
MEND = "Mend it, or change what site.toml says of it: data, and below [table]"
State = Literal["ok", "warning", "wrong"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found."""

    check: str
    state: State
    found: str
    cure: str = ""


def diagnose(home: Path, *, host: int | None, quick: bool = False, now: datetime | None = None) -> list[Finding]:
    """All checks of the site in a folder; `host` is the process that hosts it. Quick: without reading all tables."""
    folder, now = SiteFolder(home.resolve()), now or datetime.now(UTC)
    findings = [*check_settings(folder)]
    settings = None if findings[0].state == "wrong" else read_site(folder.path)
    known = read_connection(folder.connection)
    findings += [*check_address(folder), *check_way(folder), *check_admission(known)]
    findings += check_certificate(folder, settings, now)
    findings += [check_key(folder.kit), check_rights(folder)]
    if settings is not None:
        findings += check_table_names(folder, settings) if quick else check_table(folder, settings)
    findings += [check_clock(folder, known, now), *check_versions(known)]
    findings += [check_space(folder.path), check_writing(folder.path)]
    findings += check_history(folder, quick=quick)
    if settings is not None:
        findings += check_budget(folder, settings)
    findings += [*check_waiting(folder), *check_pins(folder), *check_refusal(folder)]
    if settings is not None:
        findings += check_program(folder, settings)
    findings += [check_host(host, known)]
    return findings


def worst(findings: Sequence[Finding]) -> State:
    """The worst that was found."""
    order: tuple[State, ...] = ("ok", "warning", "wrong")
    return max((finding.state for finding in findings), key=order.index, default="ok")


# --- what people wrote, and the way to the server ---------------------------------------------------------------------


def check_settings(folder: SiteFolder) -> list[Finding]:
    """Whether site.toml and the invitation can be read, and a kit is there."""
    try:
        settings, invitation = read_site(folder.path), read_invitation(folder.invitation)
    except SilographError as error:
        return [_wrong("settings", str(error))]
    if not folder.kit.config.exists():
        return [_wrong("settings", f"{folder.kit.path} has no kit", "Join anew: silograph site join")]
    return [_ok("settings", f"{settings.name} of the federation {invitation.name}, as {folder.settings} says")]


def check_address(folder: SiteFolder) -> list[Finding]:
    """Whether kit and invitation agree on the server's address: NVFlare goes by the kit, and people by the other."""
    try:
        said, used = address_of(read_invitation(folder.invitation)), kit_address(folder.kit)
    except ProtocolError:
        return []  # which was told
    if used is None:
        return [_wrong("address", f"{folder.kit.config} names no server", "Put it back, or join anew")]
    if said != used:
        found = f"the kit connects to {used}, the invitation says {said}"
        cure = f"If the invitation is right: {RENEW_ADDRESS}; if not, take the newest one of the coordinator's there"
        return [_wrong("address", found, cure)]
    return [_ok("address", f"kit and invitation agree on the server's address, {said}")]


def check_way(folder: SiteFolder) -> list[Finding]:
    """Whether the server can be reached: its name, its port, TLS, whose root, and whether it takes our certificate."""
    try:
        invitation = used_invitation(folder)
    except ProtocolError:
        return []  # which was told
    host, port = invitation.server, invitation.port
    reached = reach(invitation, folder.kit)
    told = {
        "name": f"{host} is {reached.address}",
        "port": f"port {port} answers",
        "tls": f"port {port} speaks TLS",
        "certificate": "it is of this federation, and TLS takes this site's certificate",
    }
    findings: list[Finding] = []
    for step in STEPS:
        if reached.fault is not None and reached.fault.step == step:
            return [*findings, _wrong(_STEPS[step], reached.fault.found, reached.fault.cure)]
        findings.append(_ok(_STEPS[step], told[step]))
    return findings


def check_admission(known: Connection | None) -> list[Finding]:
    """Whether the server lets this site in, as it said when it was tried last: TLS takes keys that were revoked."""
    if known is None or known.refused is None:
        return []
    found, _, cure = refusal(known.refused).rstrip(".").rpartition(". ")
    return [_wrong("admission", found, cure)]


_STEPS = {"name": "server's name", "port": "server's port", "tls": "server's TLS", "certificate": "server's root"}


# --- the site's own key, and who may read it --------------------------------------------------------------------------


def check_certificate(folder: SiteFolder, settings: SiteSettings | None, now: datetime) -> list[Finding]:
    """Whether the certificate is this site's, of this federation, and valid for long enough."""
    kit = folder.kit
    try:
        certificate = x509.load_pem_x509_certificate(kit.certificate.read_bytes())
        root = x509.load_pem_x509_certificate(kit.root_certificate.read_bytes())
    except (OSError, ValueError) as error:
        return [_wrong("certificate", f"{kit.startup}: a certificate cannot be read ({error})", RENEW)]
    (name, *_) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    named = str(name.value)[:80]
    if settings is not None and named != settings.name:
        cure = "Put the right name into site.toml, or join anew"
        return [_wrong("certificate", f"is of {named!r}, site.toml says {settings.name!r}", cure)]
    try:
        certificate.verify_directly_issued_by(root)
    except (ValueError, TypeError, InvalidSignature):
        return [_wrong("certificate", "the federation's root certificate has not signed it", RENEW)]
    begins = certificate.not_valid_before_utc
    if now < begins:
        found = f"is valid from {begins:%Y-%m-%d %H:%M} UTC on, and it is {now:%Y-%m-%d %H:%M} UTC by this clock"
        return [_wrong("certificate", found, "Set this machine's clock")]
    end = certificate_ends(kit.certificate)
    state: State = "wrong" if min(end, root.not_valid_after_utc) <= now else "warning"
    warnings = site_warnings(folder.path, now)
    return [Finding(check="certificate", state=state, found=warning) for warning in warnings] or [
        _ok("certificate", f"is of {named}, until {end:%Y-%m-%d}")
    ]


def check_key(kit: Kit) -> Finding:
    """Whether the private key can be read, and is that of the certificate."""
    try:
        read_signer(kit.certificate, kit.key)
    except ProtocolError as error:
        return _wrong("key", str(error), "Put the right key back, or join anew with a new one")
    return _ok("key", "fits the certificate")


def check_rights(folder: SiteFolder) -> Finding:
    """Whether others may read the key, and whether the folder is of the account that looks."""
    owner = folder.path.stat().st_uid
    if owner != os.geteuid():
        found = f"{folder.path} belongs to account {owner}, and you are {os.geteuid()}"
        return _warning("rights", found, "Use silograph as that account: what it writes would be yours otherwise")
    keys = [folder.kit.key, *sorted(folder.key.glob("*.key"))]
    for path in (folder.path, *keys):
        if path.exists() and path.stat().st_mode & (0o077 if path != folder.path else 0o007):
            return _wrong("rights", f"others may read {path}", f"Take that right away: chmod go= {path}")
    return _ok("rights", "nobody else may read the key")


# --- the data ---------------------------------------------------------------------------------------------------------


def check_table(folder: SiteFolder, settings: SiteSettings) -> list[Finding]:
    """Read all tables to their last row, and hold them against the federation's nodes and the site's own limits."""
    nodes = _nodes_of(folder)
    try:
        data = look_at_data(settings, folder.path)
        with noting(folder, data):  # so that whoever asks for the site's state knows it, too
            whole = whole_of(data, nodes)
    except (Refused, SilographError, OSError) as error:
        return [_unreadable(error)]
    return list(_limits(whole, settings)) or [_ok("table", f"{whole.summary}, all of it read")]


def check_table_names(folder: SiteFolder, settings: SiteSettings) -> list[Finding]:
    """The same without the rows: whether the tables are there, and which nodes they have."""
    nodes, options = _nodes_of(folder), table_options(settings)
    try:
        tables = tables_of(settings, folder.path)
        for table in tables:
            names = options.open_some(table.path)[0].names
            strangers = [] if nodes is None else [name for name in names if name not in nodes]
            if strangers:
                found = f"{table.path}: has nodes that the federation has not: {list_names(strangers)}"
                return [_wrong("table", found, "Drop these columns: drop in site.toml")]
    except (SilographError, OSError) as error:
        return [_unreadable(error)]
    if (problem := known_problem(folder)) is not None:
        return [_wrong("table", f"as was found when it was read in full: {problem}", MEND)]
    return [_ok("table", f"{settings.data_shown}: is there, and has nodes of the federation; its rows were not read")]


def _unreadable(error: Exception) -> Finding:
    """An error in a table says on its second line, if it has one, what to do."""
    found, _, cure = str(error).partition("\n")
    return _wrong("table", found, cure or MEND)


def _limits(whole: WholeData, settings: SiteSettings) -> Iterator[Finding]:
    least = settings.least_samples(len(whole.data.names))
    if whole.n_samples < least:
        found = f"{whole.summary}, fewer samples than the {least} that this site asks for (min_samples)"
        yield _wrong("table", found, "Give more samples; or a smaller min_samples, if what is sent may tell them")
    if whole.data.several and len(whole.data.tables) < settings.min_tables:
        found = f"{whole.summary}: fewer tables than the {settings.min_tables} that this site asks for (min_tables)"
        yield _wrong("table", found, "Give more tables; or a smaller min_tables, if what is sent may tell them")
    if whole.lacking:
        found = f"some tables lack {list_names(whole.lacking)}"
        yield _warning("table", found, 'Only studies with missing_nodes = "allow" can be answered')
    if whole.n_gaps:
        found = f"{whole.n_gaps} cells are empty"
        yield _warning("table", found, "Only studies that say what to do about gaps (missing) can be answered")


def _nodes_of(folder: SiteFolder) -> list[str] | None:
    return folder.nodes.read_text(encoding="utf-8").splitlines() if folder.nodes.exists() else None


# --- this machine -----------------------------------------------------------------------------------------------------


def check_clock(folder: SiteFolder, known: Connection | None, now: datetime) -> Finding:
    """The clock here against the server's, as it was when they connected last, and against the log's last entry."""
    last = next(entries(folder.audit_log, last=1), None)
    if last is not None and (ahead := (datetime.fromisoformat(str(last["time"])) - now).total_seconds()) > FAR_OFF:
        return _wrong("clock", f"the audit log ends {_span(ahead)} in the future", "Set this machine's clock")
    if known is None or known.clock is None or known.told is None:
        return _warning("clock", "cannot be compared: this site was never connected", "Start it: silograph site start")
    off, when = abs(known.clock), f"at {shown(known.told)}"
    found = f"is {_span(off)} {'behind' if known.clock > 0 else 'ahead of'} the server's, {when}"
    if off > FAR_OFF:
        cure = "Set the clock that is wrong: this machine's, or else the server's"
        return (_wrong if off > WRONG_BY else _warning)("clock", found, cure)
    return _ok("clock", f"agrees with the server's to {_span(off)}, {when}")


def check_versions(known: Connection | None) -> list[Finding]:
    """Silograph and NVFlare here, against the server's and against each other."""
    here, nvflare = importlib.metadata.version("silograph"), importlib.metadata.version("nvflare")
    pinned = [re.match(r"nvflare==([^; ]+)", one) for one in importlib.metadata.requires("silograph") or ()]
    wanted = next((found[1] for found in pinned if found), nvflare)
    findings = []
    if known is None or known.version is None:
        found = f"{here} here, unknown at the server: it has not told its version"
        findings.append(_warning("silograph", found, "Start the site: silograph site start"))
    elif known.version != here:
        found = f"{here} here, {known.version[:40]} at the server"
        findings.append(_warning("silograph", found, "Install the same version everywhere"))
    else:
        findings.append(_ok("silograph", f"{here}, as at the server"))
    if nvflare != wanted:
        cure = f"Install just that: pip install nvflare=={wanted}"
        findings.append(_wrong("NVFlare", f"{nvflare} is installed, silograph {here} is made for {wanted}", cure))
    elif known is not None and known.nvflare not in (None, nvflare):
        found = f"{nvflare} here, {str(known.nvflare)[:40]} at the server"
        findings.append(_wrong("NVFlare", found, "Install the same version everywhere"))
    else:
        findings.append(_ok("NVFlare", nvflare))
    return findings


def check_space(path: Path) -> Finding:
    """Whether the disk has room for logs and results."""
    free = shutil.disk_usage(path).free
    found = f"{free / 1e9:.3g} GB are free below {path}"
    cure = "Free some: a site answers nothing that it cannot write down"
    if free < LEAST_SPACE:
        return _wrong("disk", found, cure)
    return _warning("disk", found, cure) if free < LITTLE_SPACE else _ok("disk", found)


def check_writing(path: Path) -> Finding:
    """Whether something can be written in the folder, and reaches the disk."""
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(bytes(100_000))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return _wrong("writing", f"{path}: {error.strerror}", "Free the disk, or give the right to write there")
    return _ok("writing", "the folder can be written to")


# --- what the site remembers ------------------------------------------------------------------------------------------


def check_history(folder: SiteFolder, *, quick: bool) -> list[Finding]:
    """Whether log and budget are the newest of this site, and whole: not restored from an older copy, not altered."""
    cure = "Find out why, then go on with: silograph site restored"
    findings = []
    if (witness := read_witness(folder, "refused")) is not None and not AuditLog(folder.audit_log).has(witness):
        found = f"the coordinator has seen entry {witness.entries} of the audit log, which is not there: this folder "
        findings.append(_wrong("history", found + "was restored from an older copy. Every run is refused", cure))
    if (problem := Budget(folder.path).problem()) is not None:
        findings.append(_wrong("history", f"{problem}. Every run is refused", cure))
    verdict = None if quick else verify(folder.audit_log)
    if verdict is not None and verdict.problem is not None:
        keep = "Keep it as evidence, and look for who may write there"
        findings.append(_wrong("history", f"{folder.audit_log}, {verdict.problem}", keep))
    told = "" if verdict is None else f", {verdict.entries} entries of the log unbroken"
    return findings or [_ok("history", f"the budget is as the audit log says{told}")]


def check_budget(folder: SiteFolder, settings: SiteSettings) -> list[Finding]:
    """Whether the site's limits on all studies together leave room for another."""
    try:
        openings = Budget(folder.path).openings()
    except Refused:
        return []  # which was told
    spent, total = spent_by(openings), settings.epsilon_total
    if total is not None:
        left = more_that_fit(min(SMALL_EPSILON, total), openings, settings)
        found = f"epsilon_total = {total:g} leaves {left} studies at epsilon = {min(SMALL_EPSILON, total):g}"
    elif settings.sums_total is not None:
        left = max(0, settings.sums_total - spent.sums)
        found = f"{left} of {settings.sums_total} openings without noise are left (sums_total)"
    else:
        return [_ok("budget", f"openings without noise so far: {spent.sums}; site.toml sets no limit")]
    if left:
        return [_ok("budget", found)]
    return [_warning("budget", f"used up: {found}", "See: silograph site budget")]


def check_waiting(folder: SiteFolder) -> list[Finding]:
    """Studies that people have not read yet."""
    waiting = Approvals(folder.path).pending()
    if not waiting:
        return [_ok("studies", "none waits for approval")]
    names = ", ".join(study.sha for study in waiting[:3])
    more = f" and {len(waiting) - 3} more" if len(waiting) > 3 else ""
    found = f"{len(waiting)} {'waits' if len(waiting) == 1 else 'wait'} for approval: {names}{more}"
    return [_warning("studies", found, "Read, then approve or reject: silograph site approve HASH")]


def check_pins(folder: SiteFolder) -> list[Finding]:
    """Whether the keys of studies with masked sums, which wait or are approved, are pinned here."""
    try:
        lacking, pinned = unpinned_keys(folder), Pins(folder.path).all()
    except SilographError as error:
        return [_wrong("pins", str(error))]
    if not lacking:
        return [_ok("pins", "the keys of all sites whose numbers are to be masked with this site's are pinned")]
    found = f"not pinned as a study names them: the keys of {', '.join(lacking)}. A run of it is refused (pins)"
    site, key = next(iter(lacking.items()))
    command = f"silograph site pin {site} {shown_fingerprint(key)}{' --replace' * (site in pinned)}"
    asks = f"Ask {site} by telephone for its key; if it is this one: {command}"
    return [_warning("pins", found, asks + ". The others likewise" * (len(lacking) > 1))]


def check_refusal(folder: SiteFolder) -> list[Finding]:
    """Whether what was refused last has been answered since."""
    last = last_refusal(folder)
    if last is None or not last.stands:
        return []
    found = f"run {last.run} was refused at {shown(last.when)}: {last.code} ({last.detail})"
    return [_warning("refusal", found, "See docs/reference/refusals.md for the code, and: silograph site log")]


def check_program(folder: SiteFolder, settings: SiteSettings) -> list[Finding]:
    """Whether the program that tells of studies that wait is there."""
    if not settings.on_pending:
        return []
    program = settings.on_pending[0]
    # A path is seen from the site's folder, a name is looked for where the shell looks
    if shutil.which(str(folder.path / program) if "/" in program else program) is None:
        found = f"on_pending: no program {program} that this account may run. Nobody is told of studies that wait"
        return [_wrong("on_pending", found, "Install it, or name another in site.toml: [notify] on_pending")]
    return [_ok("on_pending", f"{program} is there")]


def check_host(host: int | None, known: Connection | None) -> Finding:
    """Whether the site is running, and connected."""
    if host is None:
        return _wrong("running", "the site is not running here", "Start it: silograph site start")
    if known is None or known.state != "connected":
        since = "" if known is None else f" since {shown(known.since)}"
        return _wrong("running", f"process {host} hosts the site, which is not connected{since}", _why(known))
    return _ok("running", f"process {host} hosts the site; connected since {shown(known.since)}")


def _why(known: Connection | None) -> str:
    if known is not None and known.refused is not None:
        return "The server refuses it: see admission"
    return "See what it says, in logs/site.log" if known is None or known.why is None else known.why


def _span(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"


def _ok(check: str, found: str) -> Finding:
    return Finding(check=check, state="ok", found=found)


def _warning(check: str, found: str, cure: str) -> Finding:
    return Finding(check=check, state="warning", found=found, cure=cure)


def _wrong(check: str, found: str, cure: str = "") -> Finding:
    return Finding(check=check, state="wrong", found=found, cure=cure)
