"""The site's service: every request of the coordinator passes it, and every answer.

It believes only what the coordinator has signed for this site, and asks the site's own file whether to answer. It
writes request and answer into the audit log. When it does not answer, it sends a code and no more: what went wrong
stays at the site.
"""

import hashlib
import json
import os
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from silograph._util.naming import as_key, naming
from silograph.errors import OutputError, ParameterError, ProtocolError
from silograph.federation.envelope import SignedMessage, VerifiedMessage, open_message
from silograph.federation.folders import SiteFolder
from silograph.federation.identity import Signer, Trust, public_key_fingerprint
from silograph.federation.names import RUN_ID
from silograph.federation.refusals import Refused
from silograph.federation.site.approvals import Approvals
from silograph.federation.site.audit import AuditLog
from silograph.federation.site.counters import count_table_round
from silograph.federation.site.gate import Gate
from silograph.federation.site.masking import check_pins
from silograph.federation.site.parsing import contents_of, parse_hello, parse_n_silos, parse_scalars, plain_entries
from silograph.federation.site.pins import Pins, strangers
from silograph.federation.site.reading import FullReading, note_read, problem_of
from silograph.federation.site.restored import check_witness
from silograph.federation.site.run import LEARN, SETUP, Asked, SiteRun, open_site_run
from silograph.federation.site.settings import SiteSettings, read_site
from silograph.federation.site.settings_log import note_settings
from silograph.federation.site.state import version_in
from silograph.federation.study_file import StudyFile
from silograph.federation.versions import VERSION
from silograph.federation.witness import Witness
from silograph.methods.common.settings import PAPER_ROUNDS
from silograph.protocol.codec import decode_task, encode_answer
from silograph.protocol.sums import Subtotal

TURN_SECONDS = 5.0  # that a request waits for the one before it
MOST_RUNS_OPEN = 4  # each holds the table's costs; a run that is closed is greeted again
COORDINATOR = "coordinator"  # whom a reply is for


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A message that leaves the site, and the log's entry about it."""

    body: bytes = b""
    code: str | None = None  # of a refusal
    log: Mapping[str, str | int | float | bool | None]


class SiteService:
    """The service of one site. It answers requests one after the other."""

    def __init__(self, folder: Path, *, signer: Signer, trust: Trust) -> None:
        self.folder = SiteFolder(folder)
        self.settings: SiteSettings = read_site(folder)
        self.log = AuditLog(self.folder.audit_log)
        self._approvals = Approvals(folder)
        self._gate = Gate(self.folder, self.settings)
        self._reading = FullReading(self.folder)
        self._settings_noted = False
        self._signer, self._trust = signer, trust
        self._site_runs: dict[str, SiteRun] = {}
        self._lock = threading.Lock()

    def reply(self, data: bytes) -> bytes:
        """The signed answer or refusal to a signed request. Never raises; a refusal gives no reason but a code."""
        with naming(as_key):  # the reason is for the site's own people
            return self._reply(data)

    def _reply(self, data: bytes) -> bytes:
        try:
            request = self._verify(data)
        except (ProtocolError, Refused) as error:
            code = error.code if isinstance(error, Refused) else "malformed"
            digest = hashlib.sha256(data).hexdigest()
            return self._seal(digest, {}, self._refusal(code, str(error), {"bytes": len(data)}))
        entry = plain_entries(request.head, "kind", "run", "stage", "step", "round")
        about: dict[str, Any] = {"from": request.sender, **entry, "bytes": len(data)}
        if not self._lock.acquire(timeout=TURN_SECONDS):
            return self._seal(request.digest, request.head, Reply(code="busy", log={**about, "code": "busy"}))
        try:
            witness = None
            try:
                self._note_settings()
                witness = self._note({"what": "asked", **about})
                reply = self._answer(request, about)
            except OutputError as error:
                reply = self._refusal("internal", str(error), about)
            return self._seal(request.digest, request.head, reply, witness)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Let other processes of this site have the runs."""
        with self._lock:
            for site_run in self._site_runs.values():
                site_run.close()
            self._site_runs.clear()

    # --- who asks, and for what ---------------------------------------------------------------------------------------

    def _verify(self, data: bytes) -> VerifiedMessage:
        request = open_message(data, self._trust)
        if request.sender != self.settings.server:
            raise Refused("not-coordinator", f"asked by {request.sender!r}, not by {self.settings.server!r}")
        if request.text("to") != self.settings.name:
            raise Refused("not-coordinator", f"a request to {request.text('to')!r} was brought here")
        return request

    def _answer(self, request: VerifiedMessage, about: Mapping[str, Any]) -> Reply:
        kinds = {
            "hello": self._hello,
            "key": self._key,
            "peers": self._peers,
            "round": self._round,
            "finish": self._finish,
            "status": self._status,
        }
        run = request.head.get("run")
        try:
            answer = kinds.get(request.text("kind"))
            if answer is None:
                raise Refused("malformed", "a request of an unknown kind")
            return answer(request)
        except Refused as error:
            self._forget(run if error.code not in ("conflict", "kept", "rounds") else None)
            return self._refusal(error.code, error.detail, about)
        except ProtocolError as error:
            return self._refusal("malformed", str(error), about)
        except Exception as error:  # the coordinator learns no more than that the site failed
            self._forget(run)
            self._keep_trace()
            # No more than its type: its text may quote the table, and the reason is shown, and kept with the log
            where = f"what it says, and the trace, are in {self.folder.errors.name}"
            return self._refusal("internal", f"{type(error).__name__}; {where}", about)

    def _hello(self, request: VerifiedMessage) -> Reply:
        run, (study, nodes, silos) = self._run_of(request), parse_hello(request)
        check_witness(self.folder, self.log, request.head.get("witness"))
        self._check_study(study, request.sender)
        self._check_sites(silos, study)
        self._check_pins(study)
        before = version_in(self.folder.state, run)
        data = self._gate.check_table(study, nodes, request.sender, before=before)
        self._gate.check_budget(study, data, silos, request.sender)
        site_run = self._site_runs.get(run)
        if site_run is None:
            self._make_room()
            site_run = open_site_run(self.folder, self.settings, data, run, study, nodes, silos)
            self._site_runs[run] = site_run
        elif (site_run.study.sha256, site_run.nodes, site_run.sites) != (study.sha256, nodes, silos):
            raise Refused("conflict", f"run {run}: began with another study, other silos or other nodes")
        site_run.check_data()
        if site_run.data.version != data.version:  # the files were exchanged between two looks
            raise Refused("data-changed", f"{data.place}: is not the version that run {run} began with")
        note_read(self.folder, data.version)
        n_silos = len(site_run.group.silos)
        left = f"that it is ready, with {n_silos} tables" if data.several else "that it is ready"
        body = json.dumps({"n_silos": n_silos}).encode()
        return Reply(body=body, log={"study": study.sha256, "table": data.version, "left": left})

    def _key(self, request: VerifiedMessage) -> Reply:
        site_run = self._site_run(request)
        self._check_study(site_run.study, request.sender, running=site_run.data.version)
        left = "its key for this run, signed"
        left += ", its min_sites and which pairs it has" * site_run.study.settings.may_lack_nodes
        return Reply(body=site_run.key(self._signer), log={"left": left})

    def _peers(self, request: VerifiedMessage) -> Reply:
        site_run = self._site_run(request)
        self._check_study(site_run.study, request.sender, running=site_run.data.version)
        self._check_pins(site_run.study)
        site_run.take_keys(request.body, self._trust)
        return Reply(log={"left": "that it has all sites' keys"})

    def _round(self, request: VerifiedMessage) -> Reply:
        site_run = self._site_run(request)
        stage = request.text("stage")
        if stage not in (SETUP, LEARN):
            raise Refused("malformed", f"stage {stage!r}")
        scalars, n_silos = parse_scalars(request, stage), parse_n_silos(request)
        task = decode_task(request.body, n_pairs=site_run.group.pairs.size)
        announced = (site_run.run, request.head.get("step"), request.head.get("round"))  # the log has it from the head
        if (task.header.run, task.header.step, task.header.round) != announced:
            raise Refused("malformed", "a task of another run or round than the envelope says")
        parts = [stage, sorted(scalars.items()), n_silos, request.body_digest]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        asked = Asked(stage=stage, scalars=scalars, n_silos=n_silos, task=task, digest=digest)
        version = site_run.data.version
        self._check_study(site_run.study, request.sender, running=version)
        site_run.check_data()
        site_run.check_number(n_silos)
        answer, seconds = site_run.last_answer_to(asked), 0.0
        if answer is None:
            method = site_run.method(asked)
            if stage == LEARN:
                self._check_method(method.name)
            if site_run.last is None:
                self._gate.check_difference(site_run.study, request.sender, site_run.data)
            self._count_round(site_run.study)
            settings = site_run.study.settings
            report = settings.report and self.settings.report and not settings.privacy.masked
            answer = site_run.answer(method, asked, report=report, charge=lambda draw: self._charge(site_run, draw))
            seconds = site_run.seconds
        left = contents_of(answer, masked=site_run.is_masked(stage))
        return Reply(body=encode_answer(answer), log={"left": left, "seconds": round(seconds, 4)})

    def _finish(self, request: VerifiedMessage) -> Reply:
        site_run = self._site_run(request)
        self._check_study(site_run.study, request.sender, running=site_run.data.version)
        task = decode_task(request.body, n_pairs=site_run.group.pairs.size)
        answer = site_run.finish(task, self.folder.results, digest=request.body_digest)
        shared = isinstance(answer, Subtotal) or (site_run.study.share_graphs and self.settings.share_graph)
        if answer is None or not shared:
            raise Refused("kept", f"{'the graph stays' if answer else 'graphs stay'} here, in results/")
        return Reply(body=encode_answer(answer), log={"left": contents_of(answer)})

    def _status(self, request: VerifiedMessage) -> Reply:
        why = None
        try:
            check_witness(self.folder, self.log, request.head.get("witness"))
            data, why = self._readiness()
        except Refused as error:
            data, why = error.code, error.detail
        body = json.dumps({"version": VERSION, "data": data}).encode()
        return Reply(body=body, log={"left": body.decode(), "detail": why})

    def _readiness(self) -> tuple[str, str | None]:
        """In a word, which leaves, and why, which does not."""
        try:
            data, nodes = self._gate.look(), self.folder.nodes
            if nodes.exists():
                names = nodes.read_text(encoding="utf-8").splitlines()
                # Each study says whether some may be missing
                data.check_nodes(names, self.settings.name, missing_nodes="allow", whose="the federation")
        except Refused as error:
            return "other nodes" if error.code == "nodes" else "not readable", error.detail
        except OSError as error:
            return "not readable", str(error)
        return self._reading.state(data), problem_of(self.folder, data.version) or None

    # --- what the site's own file says ----------------------------------------------------------------------------

    def _check_study(self, study: StudyFile, asked_by: str, *, running: str | None = None) -> None:
        """Refuse what was not approved, or is beyond the limits; `running`: the table's version in a run under way."""
        if running is None:
            self._gate.check_study(study, asked_by)
        else:
            self._gate.check_running(study, running)
        settings = study.settings
        self._check_method(settings.method)
        most = self.settings.max_local_steps
        if "local_steps" in settings.used and settings.local_steps > most:
            raise Refused("method", f"asks for {settings.local_steps} local steps, site.toml allows {most}")
        n_rounds = settings.rounds or (PAPER_ROUNDS if settings.by_gradient else 0)
        if n_rounds > self.settings.max_rounds:
            raise Refused("rounds", f"asks for {n_rounds} rounds, site.toml allows {self.settings.max_rounds}")

    def _check_method(self, name: str) -> None:
        """Of the study, and again of what its parameters make of it: the exact method can be `independent`."""
        if name not in self.settings.methods:
            raise Refused("method", f"{name!r} is not among those that site.toml allows")

    def _check_sites(self, silos: Sequence[str], study: StudyFile) -> None:
        """Who takes part is the coordinator's word alone: it must be sites that our people know of, and enough.

        They know those that they were invited with, those whose key they pinned, and those named in a study that they
        have read and approved. So a site that came later takes part in nothing that they agreed to before.
        """
        read = () if self._approvals.get(study.sha256) is None else study.sites or ()
        try:
            unknown = strangers(self.folder.path, set(silos) - set(read))
        except (ProtocolError, ParameterError) as error:
            raise Refused("sites", str(error)) from error
        if unknown:
            raise Refused("sites", f"{', '.join(unknown)}: not in {self.folder.invitation.name}, nor pinned")
        if len(silos) < self.settings.min_sites:
            raise Refused("sites", f"{len(silos)} sites, site.toml asks for {self.settings.min_sites} at least")

    def _check_pins(self, study: StudyFile) -> None:
        """Of a masked study: its keys must be those that this site's people know by a second way."""
        if study.settings.privacy.masked:
            own = public_key_fingerprint(self._signer.certificate)
            check_pins(study, Pins(self.folder.path), site=self.settings.name, fingerprint=own)

    def _charge(self, site_run: SiteRun, draw: str) -> None:
        self._gate.note(site_run.study, site_run.data, site_run.sites, site_run.run, draw=draw)

    def _count_round(self, study: StudyFile) -> None:
        if self._approvals.count_round(study.sha256) > self.settings.max_rounds:
            raise Refused("rounds", f"study {study.sha256}: {self.settings.max_rounds} rounds are used up")
        count_table_round(self.folder, most=self.settings.max_rounds_table)

    # --- runs -----------------------------------------------------------------------------------------------------

    def _run_of(self, request: VerifiedMessage) -> str:
        run = request.text("run")
        if not RUN_ID.fullmatch(run):
            raise Refused("malformed", "the name of a run is not one of silograph's")
        return run

    def _site_run(self, request: VerifiedMessage) -> SiteRun:
        site_run = self._site_runs.get(self._run_of(request))
        if site_run is None:
            raise Refused("unknown-run")
        return site_run

    def _make_room(self) -> None:
        """Let go of the oldest run, of those without an answer first: greetings alone must cost nothing."""
        while len(self._site_runs) >= MOST_RUNS_OPEN:
            self._forget(min(self._site_runs, key=lambda run: self._site_runs[run].last is not None))

    def _forget(self, run: object) -> None:
        """After a refusal or a failure, read everything anew: the state may have changed in part."""
        site_run = self._site_runs.pop(run, None) if isinstance(run, str) else None
        if site_run is not None:
            site_run.close()

    # --- what leaves, and what is written down --------------------------------------------------------------------

    def _refusal(self, code: str, detail: str, about: Mapping[str, Any]) -> Reply:
        return Reply(code=code, log={**about, "code": code, "detail": detail})

    def _note_settings(self) -> None:
        """Before the first request is noted: the log tells by which limits it was answered."""
        if not self._settings_noted:
            note_settings(self.log, self.settings)
            self._settings_noted = True

    def _seal(self, digest: str, head: Mapping[str, Any], reply: Reply, witness: Witness | None = None) -> bytes:
        message = self._sign(digest, head, reply, witness)
        data, _ = message.to(COORDINATOR)
        what = {"what": "refused" if reply.code else "answered", **plain_entries(head, "run", "round")}
        if reply.body:
            what["sha256"] = message.body_digest  # so that the log can be held against what arrived
        try:
            self._note({**what, **reply.log, "bytes_sent": len(data)}, durable=reply.code is None)
        except OutputError:  # what cannot be written down does not leave
            return self._sign(digest, head, Reply(code="internal", log={})).to(COORDINATOR)[0]
        return data

    def _sign(
        self, digest: str, head: Mapping[str, Any], reply: Reply, witness: Witness | None = None
    ) -> SignedMessage:
        answer: dict[str, Any] = {"kind": "refusal" if reply.code else "answer", "re": digest}
        answer |= {"run": head.get("run"), "version": VERSION}
        if reply.code:
            answer["code"] = reply.code
        elif witness is not None:  # an answer waits for the disk, a refusal does not: a power cut would belie it
            answer["witness"] = witness.plain
        return SignedMessage(answer, reply.body, self._signer)

    def _note(self, entry: Mapping[str, Any], *, durable: bool = False) -> Witness:
        return self.log.append({name: value for name, value in entry.items() if value is not None}, durable=durable)

    def _keep_trace(self) -> None:
        """For the site's engineer alone."""
        with suppress(OSError):  # a full disk may be the very reason
            handle = os.open(self.folder.errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(handle, "a", encoding="utf-8") as file:
                file.write(f"{datetime.now(UTC).isoformat()}\n{traceback.format_exc()}\n")
