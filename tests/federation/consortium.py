"""A small consortium on disk: certificates, sites' folders with data, a run's folder, and desks reached by a call."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from silograph.federation.coordinator.conduct import conduct
from silograph.federation.coordinator.question import Silence
from silograph.federation.coordinator.run_folder import Outcome, RunFolder, new_run
from silograph.federation.identity import Signer, Trust
from silograph.federation.site.desk import Desk
from silograph.federation.site.settings import SiteSettings, write_site
from silograph.study_file import read_study

SERVER = "coordinator.example"
SITES = ("kyoto", "lima", "oslo")
NODES = tuple(f"node {k}" for k in range(8))


def make_identity(
    name: str, issuer: tuple[x509.Certificate, rsa.RSAPrivateKey] | None = None
) -> tuple[x509.Certificate, rsa.RSAPrivateKey]:
    """A certificate and its key, signed by the issuer or by itself."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    return builder.sign(issuer[1] if issuer else key, SHA256()), key


class Authority:
    """A root certificate, and what it signs."""

    def __init__(self, name: str = "root") -> None:
        self._root = make_identity(name)
        self.trust = Trust(self._root[0].public_bytes(Encoding.PEM))

    def signer(self, name: str) -> Signer:
        certificate, key = make_identity(name, self._root)
        return Signer(certificate=certificate.public_bytes(Encoding.PEM), key=key)


def write_table(path: Path, seed: int, *, n_samples: int = 40, nodes: Sequence[str] = NODES) -> np.ndarray:
    """A site's table of smooth signals."""
    rng = np.random.default_rng(seed)
    base = np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(range(len(nodes)), range(len(nodes)))))
    signals = rng.normal(size=(n_samples, len(nodes))) @ base.T
    lines = [",".join(nodes)] + [",".join(f"{value!r}" for value in row.tolist()) for row in signals]
    path.write_text("\n".join(lines) + "\n")
    return signals


Tamper = Callable[[str, bytes, Callable[[bytes], bytes]], bytes | Silence]


@dataclass
class Loopback:
    """Brings bytes to desks by a call; `tamper` may do what a network or a hostile site does."""

    desks: dict[str, Desk]
    tamper: Tamper = lambda site, data, desk: desk(data)
    asked: list[tuple[str, bytes]] = field(default_factory=list)

    def ask(self, site: str, data: bytes, timeout: float) -> bytes | Silence:
        self.asked.append((site, data))
        return self.tamper(site, data, self.desks[site].reply)


class Consortium:
    """All of it in one folder."""

    def __init__(self, folder: Path, *, sites: Sequence[str] = SITES, **limits) -> None:
        self.folder, self.sites = folder, tuple(sites)
        self.authority = Authority()
        self.trust = self.authority.trust
        self.server = self.authority.signer(SERVER)
        self.signers = {site: self.authority.signer(site) for site in sites}
        for seed, site in enumerate(sites):
            self.make_site(site, seed, **limits)

    def make_site(self, site: str, seed: int, **limits) -> None:
        home = self.folder / site
        home.mkdir(parents=True)
        write_table(home / f"{site}.csv", seed)
        settings = {"name": site, "federation": "test", "server": SERVER, "data": Path(f"{site}.csv")}
        write_site(home, SiteSettings(**{**settings, "approve_all": True, **limits}))

    def desks(self) -> dict[str, Desk]:
        return {site: Desk(self.folder / site, signer=self.signers[site], trust=self.trust) for site in self.sites}

    def run(self, learn: str = 'method = "exact"\ndegree = 3', policy: str = "", **top: str) -> RunFolder:
        text = 'name = "test"\nnodes = "nodes.txt"\n'
        text += "".join(f"{key} = {value}\n" for key, value in top.items())
        (self.folder / "study.toml").write_text(f"{text}[learn]\n{learn}\n[policy]\n{policy}\n")
        (self.folder / "nodes.txt").write_text("\n".join(NODES) + "\n")
        study, nodes = read_study(self.folder / "study.toml")
        return new_run(self.folder / "runs", study, nodes, self.sites)

    def conduct(self, run: RunFolder, transport: Loopback, attempt: str = "a") -> Outcome:
        return conduct(run, transport, attempt=attempt, signer=self.server, trust=self.trust)
