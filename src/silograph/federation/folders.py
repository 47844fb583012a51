"""Where everything lies: the folder of a federation, the folder of a site, and the kits in them.

The folder of one run is `coordinator.run.CoordinatorRun` at the coordinator, and `site.state.RunStore` at a site.
"""

import json
from pathlib import Path
from typing import Literal

HOST_FILE = "host.pid"  # who hosts the server or the site; locked, so that nobody hosts a second time
CACHE_FOLDER = "cache"  # what Numba compiled
POINTER_FILE = "silograph.json"  # in a kit's local configuration; see `owner_of_kit`


class Kit:
    """The files that NVFlare starts from: certificate, key and address in `startup/`, the policy in `local/`."""

    def __init__(self, path: Path, role: Literal["server", "client", "admin"]) -> None:
        startup, identity = path / "startup", "server" if role == "server" else "client"
        self.path, self.startup = path, startup
        self.config = startup / f"fed_{role}.json"
        self.certificate, self.key = startup / f"{identity}.crt", startup / f"{identity}.key"
        self.root_certificate = startup / "rootCA.pem"
        self.local = path / "local"
        self.resources = self.local / "resources.json"
        self.authorization = self.local / "authorization.json"
        self.log_config = self.local / "log_config.json"
        self.transfer = path / "transfer"


class FederationFolder:
    """The coordinator's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.about = path / "federation.json"  # the invitation, kept here: whom this federation may sign
        self.authority = path / "ca"  # the root key and certificate
        self.root_key = self.authority / "rootCA.key"
        self.root_certificate = self.authority / "rootCA.pem"
        self.profile = self.authority / "profile.yml"
        self.server = Kit(path / "server", "server")
        self.lead = Kit(path / "lead", "admin")  # who asks the server's desk; may lie elsewhere
        self.conductor = Kit(path / "conductor", "admin")  # who submits jobs, at the server
        # By their names in `names.OWN_NAMES`
        self.own_kits = {"server": self.server, "lead": self.lead, "conductor": self.conductor}
        self.conductor_lock = path / "conductor.lock"  # held by the process that does; empty
        self.certificates = path / "sites"  # of the sites that were signed: whose key is whose
        self.revoked = self.certificates / "revoked"  # SITE.KEY.crt: keys that are believed no more
        self.storage = path / "storage"  # the server's jobs
        self.jobs, self.snapshots = self.storage / "jobs", self.storage / "snapshots"
        self.runs = path / "runs"
        self.forgotten = path / "forgotten"  # RUN: empty; that a run was removed, for ever
        self.status = path / "status.json"  # the sites' last answers to a survey
        self.witnesses = path / "witnesses"  # SITE.json: how far a site's audit log was, when it last answered
        self.nodes, self.study = path / "nodes.txt", path / "study.toml"
        self.log = path / "logs" / "server.log"  # what happened, a line each
        self.printed = path / "logs" / "nvflare.log"  # all that the processes print, at most 60 MB

    def invitation(self, name: str) -> Path:
        """The file that goes to the sites."""
        return self.path / f"{name}.invite"

    def certificate(self, site: str) -> Path:
        """A site's certificate; it is there once the site's request was signed."""
        return self.certificates / f"{site}.crt"

    def kept_request(self, name: str) -> Path:
        """The request that the certificate of a site, or of an own kit, was signed from, kept to sign it again."""
        return (self.authority if name in self.own_kits else self.certificates) / f"{name}.request.zip"

    def revoked_key(self, site: str, key: str) -> Path:
        """The file that says that this key is believed no more."""
        return self.revoked / f"{site}.{key}.crt"

    def run(self, name: str) -> Path:
        """The folder of a run."""
        return self.runs / name


class SiteFolder:
    """A site's own folder. No coordinator writes here."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings = path / "site.toml"  # its data and limits, by its own people
        self.invitation = path / "federation.invite"
        self.key = path / "key"  # the private key, made here, which never leaves
        self.key_request = self.key / "request.json"
        self.pins = path / "pins.json"  # fingerprints of the other sites' keys, compared by people of this site
        self.pins_lock = path / "pins.lock"  # held while they change; empty
        self.kit = Kit(path / "kit", "client")
        self.nodes = path / "nodes.txt"  # of the federation
        self.audit_log = path / "audit.jsonl"  # requests and answers
        self.approvals = path / "approvals.json"  # who approved which study for which version of the table, and when
        self.approvals_lock = path / "approvals.lock"  # held while something about approvals changes; empty
        self.pending = path / "pending"  # SHA.toml: a study that waits for approval; SHA.json: who asked, and when
        self.approved = path / "approved"  # SHA.toml: a study that was approved, to compare others with
        self.read = path / "read.json"  # the version of the data that was read in full last
        self.read_lock = path / "read.lock"  # held by the process that reads them in full; empty
        self.ledger = path / "ledger"  # which versions of the table were answered for
        self.noise = path / "noise"  # what left, or was to leave, with the noise that was drawn for it
        self.budget = path / "budget.jsonl"  # what was opened of the data, and what it cost
        self.budget_lock = path / "budget.lock"  # held while it is read or written; empty
        self.witness = path / "witness.json"  # what the coordinator says of our log, where the log does not say so
        self.rounds = path / "rounds"  # SHA: how many rounds of a study were answered; table: of all studies together
        self.answered = path / "answered"  # RUN.GENERATION: empty; that a run was answered, for ever
        self.state = path / "state"  # RUN.GENERATION/: what the site keeps of a run
        self.results = path / "results"  # RUN.GENERATION/: the site's own graph, and the consensus
        self.errors = path / "errors.log"  # for the site's engineer alone
        self.log = path / "logs" / "site.log"  # what happened, a line each
        self.printed = path / "logs" / "nvflare.log"  # all that the processes print, at most 60 MB
        self.connection = path / "logs" / "connection.json"  # whether the site is connected, as its host knows it
        self.told = path / "told.json"  # of which studies that wait the program in site.toml was told

    def request(self, site: str) -> Path:
        """The file that goes to the coordinator: a signing request, and no key."""
        return self.path / f"{site}.request.zip"

    def signing_request(self, site: str) -> Path:
        """What the site's certificate is made from; it is there as soon as the key is."""
        return self.key / f"{site}.csr"


def owner_of_kit(local: Path, name: str) -> Path:
    """The folder of the site or federation to whose kit this folder of local configuration belongs.

    A kit lies in its owner's folder. Only in the simulator all sites share one workspace: there, a file in it gives a
    folder for each name.
    """
    pointer = local / POINTER_FILE
    if pointer.exists():
        return Path(json.loads(pointer.read_text(encoding="utf-8"))[name])
    return local.parent.parent
