"""A small consortium on disk: certificates, sites' folders with data, a run's folder, and services reached by a call.

Keys are made once per process: the same names have the same keys in every consortium of one authority.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from silograph.audit.consortium import SERVER, Authority, make_identity
from silograph.federation.coordinator.attempt import run_attempt
from silograph.federation.coordinator.request import Silence
from silograph.federation.coordinator.run import CoordinatorRun, Outcome, new_run, open_run
from silograph.federation.envelope import ENVELOPE_FORMAT, HEAD, MAGIC, SignedMessage, open_message
from silograph.federation.folders import SiteFolder
from silograph.federation.identity import Signer, Trust, public_key_fingerprint
from silograph.federation.invitation import Invitation, write_invitation
from silograph.federation.site.approvals import Approvals
from silograph.federation.site.data import look_at_data
from silograph.federation.site.pins import Pins
from silograph.federation.site.service import SiteService
from silograph.federation.site.settings import SiteSettings, read_site, write_site
from silograph.federation.study_file import read_study

SITES = ("kyoto", "lima", "oslo")
NODES = tuple(f"node {k}" for k in range(8))


@cache
def shared_authority() -> Authority:
    return Authority()


def self_signed(name: str) -> Signer:
    """Someone who made a certificate of this name for themselves."""
    certificate, key = make_identity(name)
    return Signer(certificate=certificate.public_bytes(Encoding.PEM), key=key)


# --- requests that no honest side writes ----------------------------------------------------------------------------


def seal(head: bytes, body: bytes, signer: Signer) -> bytes:
    """An envelope around any bytes as a head, signed properly."""
    sizes = (signer.key.key_size // 8, len(head), len(signer.certificate), len(body))
    front = HEAD.pack(MAGIC, ENVELOPE_FORMAT, *sizes) + head + signer.certificate
    digest = hashlib.sha256(front + hashlib.sha256(body).digest()).digest()
    return front + body + signer.sign(digest)


def rewrite(
    data: bytes, signer: Signer, *, trust: Trust, to: str | None = None, body: bytes | None = None, **head: object
) -> bytes:
    """A request with changes, signed by whoever: entries of the head that are None are left out."""
    request = open_message(data, trust)
    changed = {name: value for name, value in {**request.head, **head}.items() if value is not None and name != "to"}
    return SignedMessage(changed, request.body if body is None else body, signer).to(to or request.text("to"))[0]


# --- sites and runs ------------------------------------------------------------------------------------------------


def write_roster(home: Path, sites: Sequence[str]) -> None:
    """The invitation in a site's folder, from which it knows the other sites."""
    about = Invitation(name="test", server=SERVER, port=8002, sites=tuple(sites), fingerprint="0" * 64)
    write_invitation(SiteFolder(home).invitation, about)


def write_table(
    path: Path,
    seed: int,
    *,
    n_samples: int = 40,
    nodes: Sequence[str] = NODES,
    order: Sequence[int] | None = None,  # of columns in the file
) -> np.ndarray:
    """A site's table of smooth signals."""
    rng = np.random.default_rng(seed)
    base = np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(range(len(nodes)), range(len(nodes)))))
    signals = rng.normal(size=(n_samples, len(nodes))) @ base.T
    order = range(len(nodes)) if order is None else order
    lines = [",".join(nodes[column] for column in order)]
    lines += [",".join(repr(row[column]) for column in order) for row in signals.tolist()]
    path.write_text("\n".join(lines) + "\n")
    return signals


Tamper = Callable[[str, bytes, Callable[[bytes], bytes]], bytes | Silence]


@dataclass
class Loopback:
    """Brings bytes to services by a call; `tamper` may do what a network or a hostile site does."""

    services: dict[str, SiteService]
    tamper: Tamper = lambda site, data, service: service(data)
    asked: list[tuple[str, bytes]] = field(default_factory=list)

    def ask(self, site: str, data: bytes, timeout: float, most: int) -> bytes | Silence:
        self.asked.append((site, data))
        return self.tamper(site, data, self.services[site].reply)


class Consortium:
    """All of it in one folder. With `patients`, each site has a folder of so many tables instead of one table."""

    def __init__(
        self,
        folder: Path,
        *,
        sites: Sequence[str] = SITES,
        patients: Mapping[str, int] | None = None,
        authority: Authority | None = None,
        **limits,
    ) -> None:
        self.folder, self.sites, self.patients = folder, tuple(sites), dict(patients or {})
        self.authority = authority or shared_authority()
        self.trust = self.authority.trust
        self.server = self.authority.signer(SERVER)
        self.signers = {site: self.authority.signer(site) for site in sites}
        for seed, site in enumerate(sites):
            self.make_site(site, seed, **limits)

    def make_site(self, site: str, seed: int, **limits) -> None:
        home = self.folder / site
        home.mkdir(parents=True)
        for number in range(self.patients.get(site, 0)):
            self.add_patient(site, number)
        if site not in self.patients:
            write_table(home / f"{site}.csv", seed)
        write_roster(home, {*SITES, *self.sites})
        data = Path("tables" if site in self.patients else f"{site}.csv")
        settings = {"name": site, "federation": "test", "server": SERVER, "data": data}
        write_site(home, SiteSettings(**{**settings, "approve_all": True, **limits}))

    def table(self, site: str) -> Path:
        return self.folder / site / f"{site}.csv"

    def patient(self, site: str, number: int) -> Path:
        return self.folder / site / "tables" / f"private-{site}-{number}.csv"

    def add_patient(self, site: str, number: int) -> Path:
        """One more table of a site that has several; all differ, in length too."""
        path = self.patient(site, number)
        path.parent.mkdir(exist_ok=True)
        write_table(path, 1000 + 100 * SITES.index(site) + number, n_samples=20 + 3 * number)
        return path

    @property
    def tables(self) -> dict[str, Path]:
        """Every table by its silo: a site's one by the site, of several each by its own name."""
        found: dict[str, Path] = {}
        for site in self.sites:
            inside = sorted((self.folder / site / "tables").glob("*.csv")) if site in self.patients else []
            found |= {path.stem: path for path in inside} or {site: self.table(site)}
        return found

    def service(self, site: str) -> SiteService:
        return SiteService(self.folder / site, signer=self.signers[site], trust=self.trust)

    def services(self) -> dict[str, SiteService]:
        return {site: self.service(site) for site in self.sites}

    def run(
        self, learn: str = 'method = "exact"\ndegree = 3', policy: str = "", *, tables: str = "", **top: str
    ) -> CoordinatorRun:
        text = 'name = "test"\nnodes = "nodes.txt"\n'
        text += "".join(f"{key} = {value}\n" for key, value in top.items())
        (self.folder / "study.toml").write_text(f"{text}[learn]\n{learn}\n[policy]\n{policy}\n{tables}")
        (self.folder / "nodes.txt").write_text("\n".join(NODES) + "\n")
        study, nodes = read_study(self.folder / "study.toml")
        return new_run(self.folder / "runs", study, nodes, self.sites)

    def masked_run(
        self, learn: str = 'method = "oneshot"\ndegree = 3', privacy: str = "", *, policy: str = "", **top: str
    ) -> CoordinatorRun:
        """A run whose sums are masked, of sites that have pinned each other's keys."""
        for site in self.sites:
            self.pin(site)
        top = {"sites": json.dumps(self.sites), "share_graphs": "false", **top}
        keys = "".join(f'{site} = "{key}"\n' for site, key in self.fingerprints.items())
        return self.run(learn, policy, tables=f'[privacy]\nsums = "masked"\n{privacy}\n[keys]\n{keys}', **top)

    @property
    def fingerprints(self) -> dict[str, str]:
        return {site: public_key_fingerprint(signer.certificate) for site, signer in self.signers.items()}

    def pin(self, site: str, **other: str) -> None:
        """Pin all other sites' keys at a site, or what is given instead."""
        pins = Pins(self.folder / site)
        for name, key in {**self.fingerprints, **other}.items():
            if name != site:
                pins.set(name, key, by="the engineer", replace=True)

    def run_attempt(self, run: CoordinatorRun, transport: Loopback, attempt: str = "a") -> Outcome:
        return run_attempt(run, transport, attempt=attempt, signer=self.server, trust=self.trust)

    def finish(self, run: CoordinatorRun, transport: Loopback | None = None) -> Path:
        """The results of a run that must end well."""
        transport = transport or Loopback(self.services())
        outcome = self.run_attempt(run, transport)
        close(transport.services)
        assert outcome.ended == "done", outcome
        return run.folder / "results"


def needs_new_keys(outcome: Outcome) -> bool:
    """Whether the supervisor would begin a new generation."""
    return any(trouble["code"] == "keys" for trouble in outcome.troubles)


def approve(home: Path, study: bytes, **options: bool) -> None:
    """Approve a study for the site's table as it is now."""
    table = look_at_data(read_site(home), home).version
    Approvals(home).approve(study, name="test", by="the engineer", table=table, **options)


def close(services: Mapping[str, SiteService]) -> None:
    """As when the sites' processes end."""
    for service in services.values():
        service.close()


# --- another process -----------------------------------------------------------------------------------------------


@cache
def processes():
    """Starts processes from one that has imported what takes long; the path of tests it does not know."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([run_attempt.__module__, SiteService.__module__, "pandas", "networkx"])
    return context


def as_data(signer: Signer) -> tuple[bytes, bytes]:
    """A signer that can be handed to another process."""
    return signer.certificate, signer.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def from_data(data: tuple[bytes, bytes]) -> Signer:
    key = load_pem_private_key(data[1], password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return Signer(certificate=data[0], key=key)


def conduct_elsewhere(
    folder: Path, run: Path, root: bytes, signers: dict[str, tuple[bytes, bytes]], connection
) -> None:
    """Conduct a run in this process, with the services of all its sites; say so when it begins."""
    trust, known = Trust(root), {name: from_data(data) for name, data in signers.items()}
    services = {site: SiteService(folder / site, signer=known[site], trust=trust) for site in known if site != SERVER}
    connection.send("begun")
    run_attempt(open_run(run), Loopback(services), attempt="elsewhere", signer=known[SERVER], trust=trust)


def hold_elsewhere(home: Path, root: bytes, signer: tuple[bytes, bytes], requests: Sequence[bytes], connection) -> None:
    """Be a second process of a site: answer requests, send the answers, and live on until somebody says otherwise."""
    service = SiteService(home, signer=from_data(signer), trust=Trust(root))
    connection.send([service.reply(request) for request in requests])
    connection.recv()
