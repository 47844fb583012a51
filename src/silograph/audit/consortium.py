"""A small consortium on disk, with certificates of its own, and a coordinator that asks its sites whatever it likes.

The sites are the real ones: each has its folder, its limits, its ledgers, and the service through which every request
passes. Only the network is missing: a call brings the bytes.
"""

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from silograph._util.types import Matrix, Vector
from silograph.federation.envelope import SignedMessage, open_message
from silograph.federation.folders import SiteFolder
from silograph.federation.identity import Signer, Trust, public_key_fingerprint
from silograph.federation.invitation import Invitation, write_invitation
from silograph.federation.keys import join_statements
from silograph.federation.names import new_run_name
from silograph.federation.site.pins import Pins
from silograph.federation.site.service import SiteService
from silograph.federation.site.settings import SiteSettings, write_site
from silograph.protocol.codec import decode_answer, encode_task
from silograph.protocol.fixed import Limbs, Rounding, add_vector, zeros
from silograph.protocol.messages import Header, Task, Update, parts_of

SERVER = "coordinator.example"
Identity = tuple[x509.Certificate, rsa.RSAPrivateKey]


def make_identity(
    name: str,
    issuer: Identity | None = None,
    *,
    days: tuple[float, float] = (-1, 1),
    key: rsa.RSAPrivateKey | None = None,
) -> Identity:
    """A certificate and its key, signed by the issuer or by itself, valid between two days from now."""
    key = key or rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + dt.timedelta(days=days[0]))
        .not_valid_after(now + dt.timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    return builder.sign(issuer[1] if issuer else key, SHA256()), key


class Authority:
    """A root certificate, and what it signs. The coordinator has it: it can certify a second site of any name."""

    def __init__(self, name: str = "root") -> None:
        self._root = make_identity(name)
        self._signers: dict[str, Signer] = {}
        self.root = self._root[0].public_bytes(Encoding.PEM)
        self.trust = Trust(self.root)

    def signer(self, name: str) -> Signer:
        """The one of this name."""
        if name not in self._signers:
            self._signers[name] = self.new_signer(name)
        return self._signers[name]

    def new_signer(
        self, name: str, *, days: tuple[float, float] = (-1, 1), key: rsa.RSAPrivateKey | None = None
    ) -> Signer:
        """A further one of this name."""
        certificate, key = make_identity(name, self._root, days=days, key=key)
        return Signer(certificate=certificate.public_bytes(Encoding.PEM), key=key)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reply:
    """What came back: an answer's body, or the code of a refusal."""

    code: str | None
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """What a coordinator has got of the sites' terms: numbers in the ring, or codes."""

    terms: Mapping[str, Limbs]
    refused: Mapping[str, str]


class Consortium:
    """Sites with tables, each of which has pinned the others' keys and approves every study: only limits protect it."""

    def __init__(self, folder: Path, tables: Mapping[str, Matrix], nodes: Sequence[str], authority: Authority) -> None:
        self.folder, self.sites, self.nodes, self.authority = folder, tuple(tables), tuple(nodes), authority
        self.keys = {site: public_key_fingerprint(authority.signer(site).certificate) for site in self.sites}
        self._services: dict[str, SiteService] = {}
        for site, table in tables.items():
            self._make(site, table)

    def _make(self, site: str, table: Matrix) -> None:
        home = self.folder / site
        home.mkdir(parents=True)
        self.write(site, table)
        about = Invitation(name="audit", server=SERVER, port=8002, sites=self.sites, fingerprint="0" * 64)
        write_invitation(SiteFolder(home).invitation, about)
        self._set(site)
        for other, key in self.keys.items():
            if other != site:
                Pins(home).set(other, key, by="audit")

    def _set(self, site: str, **limits: Any) -> None:
        data = Path(f"{site}.csv")
        given = SiteSettings(name=site, federation="audit", server=SERVER, data=data, approve_all=True, **limits)
        (self.folder / site / "site.toml").unlink(missing_ok=True)
        write_site(self.folder / site, given)

    def limit(self, **limits: Any) -> None:
        """Set limits in every site's file."""
        self.restart()
        for site in self.sites:
            self._set(site, **limits)

    def write(self, site: str, table: Matrix, *, lacks: Sequence[int] = ()) -> None:
        """A site's table as it is from now on; it may lack some nodes."""
        has = [k for k in range(len(self.nodes)) if k not in lacks]
        lines = [",".join(self.nodes[k] for k in has)]
        lines += [",".join(map(repr, row)) for row in table[:, has].tolist()]
        (self.folder / site / f"{site}.csv").write_text("\n".join(lines) + "\n")

    def service(self, site: str) -> SiteService:
        """The site's process."""
        if site not in self._services:
            signer = self.authority.signer(site)
            self._services[site] = SiteService(self.folder / site, signer=signer, trust=self.authority.trust)
        return self._services[site]

    def restart(self) -> None:
        """End all sites' processes; they begin anew when they are asked next."""
        for service in self._services.values():
            service.close()
        self._services.clear()

    def study(self, *, top: str = "", privacy: str = "", sites: Sequence[str] | None = None, **keys: str) -> str:
        """The text of a one-shot study; `keys` are other sites' keys than they have."""
        sites = self.sites if sites is None else sites
        listed = "".join(f'{site} = "{keys.get(site, self.keys[site])}"\n' for site in sites)
        return (
            f'name = "audit"\nnodes = {json.dumps(self.nodes)}\nsites = {json.dumps(sites)}\n'
            f"share_graphs = false\n{top}\n"
            f'[learn]\nmethod = "oneshot"\npull = 1.0\nalpha = 1.0\nbeta = 1.0\n[privacy]\n{privacy}\n[keys]\n{listed}'
        )


@contextmanager
def made_consortium(
    tables: Sequence[Matrix], names: Sequence[str], authority: Authority | None = None
) -> Iterator[Consortium]:
    """A consortium in a folder that goes with it."""
    with TemporaryDirectory(prefix="silograph-audit-") as folder:
        nodes = [f"node {k}" for k in range(tables[0].shape[1])]
        tables_of = dict(zip(names, tables, strict=True))
        consortium = Consortium(Path(folder), tables_of, nodes, authority or Authority())
        try:
            yield consortium
        finally:
            consortium.restart()


class Coordinator:
    """Somebody with the coordinator's key, who asks what he likes, in one run."""

    def __init__(self, consortium: Consortium, study: str, sites: Sequence[str], *, masked: bool) -> None:
        self.consortium, self._study, self.sites, self._masked = consortium, study, tuple(sites), masked
        self.run = f"{new_run_name()}.1"

    def ask(self, site: str, kind: str, body: bytes = b"", **head: Any) -> Reply:
        """What a site says to a signed request."""
        authority = self.consortium.authority
        request = SignedMessage({"kind": kind, "run": self.run, **head}, body, authority.signer(SERVER))
        reply = open_message(self.consortium.service(site).reply(request.to(site)[0]), authority.trust)
        return Reply(code=reply.head.get("code"), body=reply.body)

    def greet(self, site: str) -> Reply:
        """Announce the run."""
        about = {"study": self._study, "nodes": self.consortium.nodes, "silos": self.sites}
        return self.ask(site, "hello", json.dumps(about).encode())

    def ask_costs(self, site: str, round: int = 1) -> Reply:  # noqa: A002
        """Ask for the site's term of the sum."""
        header = Header(run=self.run, method="setup", step="costs", round=round)
        body = encode_task(Task(header=header, parts={}))
        return self.ask(
            site, "round", body, stage="setup", step="costs", round=round, n_silos=len(self.sites), scalars={}
        )

    def send_sum(self, site: str, cost: Vector) -> Reply:
        """Send down what is said to be the sum, for the site's own graph."""
        n_silos = len(self.sites)
        header = Header(run=self.run, method="oneshot", step="personal", round=1)
        body = encode_task(Task(header=header, parts={"cost": cost, "weight": float(n_silos)}))
        scalars = {"alpha": 1.0, "beta": 1.0, "rho": 0.0, "lam": 0.0, "alike": 0.0}
        return self.ask(site, "round", body, stage="learn", step="personal", round=1, n_silos=n_silos, scalars=scalars)

    def exchange_keys(self, replaced: Mapping[str, bytes] | None = None) -> dict[str, str]:
        """Bring all sites' keys to all, some replaced; the codes of those that refuse."""
        stated = {site: self.ask(site, "key").body for site in self.sites} | dict(replaced or {})
        joined = join_statements([stated[site] for site in self.sites])
        codes = {site: self.ask(site, "peers", joined).code for site in self.sites}
        return {site: code for site, code in codes.items() if code is not None}

    def open_sum(self) -> Opened:
        """All that can be had of the sites' terms by doing as a coordinator does."""
        refused = {site: code for site in self.sites if (code := self.greet(site).code) is not None}
        if not refused and self._masked:
            refused = self.exchange_keys()
        if refused:
            return Opened(terms={}, refused=refused)
        replies = {site: self.ask_costs(site) for site in self.sites}
        return Opened(
            terms={site: limbs_in(reply.body) for site, reply in replies.items() if reply.code is None},
            refused={site: reply.code for site, reply in replies.items() if reply.code is not None},
        )


def limbs_in(body: bytes) -> Limbs:
    """The term that an answer holds, as the ring has it."""
    answer = decode_answer(body)
    if not isinstance(answer, Update):
        return np.asarray(answer.parts["cost"], dtype=np.uint64)
    term: Vector = np.asarray(parts_of(answer)["cost"])
    limbs = zeros(term.size)
    add_vector(limbs, term, 0, Rounding.NEAREST)
    return limbs
