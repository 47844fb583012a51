"""One request to one site, sent until there is an answer that can be believed, or the policy says enough.

A reply counts only if the site that was asked has signed it, if it replies to just this request, and if it holds just
what the step calls for. Anything else is kept aside with the reason, and the request is sent again, a few times.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Literal, Protocol, TypeVar

from silograph.errors import ProtocolError, SilographError
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.quarantine import Quarantine
from silograph.federation.coordinator.witnesses import Witnesses
from silograph.federation.envelope import SignedMessage, VerifiedMessage, largest_message, open_message
from silograph.federation.identity import Signer, Trust
from silograph.federation.refusals import PASSING, REASONS
from silograph.federation.study_file import Policy
from silograph.federation.versions import VERSION, difference, go_together

T = TypeVar("T")

LONGEST_REASON = 300  # characters; what a site sends may be quoted in it
FIRST_WAIT, LONGEST_WAIT = 4.0, 120.0  # seconds for one try: a process killed with a request in hand is then missed
HELLO_WAIT, HELLO_GROWTH = 0.5, 1.3  # seconds for the first try at a process that comes up, and the next ones' factor:
# what is sent too early is lost, and what is sent often does not make a site that reads its data any faster
GONE_AFTER = 3.0  # seconds out of reach after which nobody waits for a site's process any more
COMING_UP = 60.0  # seconds that a process may take to come up
REACH_PAUSE = 0.3  # seconds between two tries at a site out of reach
APPROVAL_PAUSE, LONGEST_APPROVAL_PAUSE = 1.0, 15.0  # seconds between two tries at a site that has not approved
NO_KEY = "its key was revoked, and no other one signed since"  # nothing that it could answer would be believed
PROCESS_ENDED, OUT_OF_REACH = "its process has ended", "it is out of reach"  # why a site is lost
MOST_REJECTED = 3  # bad answers to one request before the site counts as unable to answer
LONGEST_VERSION = 40  # characters
SMALL_BODY = 10_000  # bytes of an answer without numbers

TroubleKind = Literal["lost", "missing", "refused", "rejected"]


class Silence(Enum):
    """Why no bytes came back."""

    LATE = "no answer in time"
    UNREACHABLE = "out of reach"
    GONE = "the site is in reach, and has no process for the run"


@dataclass(frozen=True, slots=True)
class Oversized:
    """A reply that was not read: it is larger than any that the request can have."""


class Transport(Protocol):
    """Carries bytes to the sites."""

    def ask(self, site: str, data: bytes, timeout: float, most: int) -> bytes | Silence | Oversized:
        """Bring bytes to a site, and its bytes back; of more than `most` bytes none need be read."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a site is without an answer."""

    site: str
    kind: TroubleKind  # its process gone, silent too long, unwilling, not believed
    reason: str
    code: str = ""  # of a refusal


class SitesTroubleError(SilographError):
    """Sites that did not answer as they should. The policy says what to do."""

    def __init__(self, troubles: Sequence[Trouble]) -> None:
        self.troubles = tuple(troubles)
        super().__init__("; ".join(f"{trouble.site}: {trouble.reason}" for trouble in troubles))


class StoppedError(SilographError):
    """The run must stop, by order."""


class Traffic:
    """The cost of an exchange, counted by several threads."""

    def __init__(self) -> None:
        self.seconds, self.down, self.up = 0.0, 0, 0
        self._lock = threading.Lock()

    def count(self, *, down: int = 0, up: int = 0) -> None:
        """Add bytes."""
        with self._lock:
            self.down += down
            self.up += up


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDescription:
    """The content of a hello: every site gets it before the first round."""

    run_id: str
    study: str  # the study file's text
    nodes: tuple[str, ...]
    silos: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Channel:
    """All that a request needs: how bytes travel, in whose name, whom to believe, how long to wait, where to log it."""

    transport: Transport
    run: RunDescription
    policy: Policy
    signer: Signer
    trust: Trust
    history: History
    quarantine: Quarantine
    witnesses: Witnesses
    stopped: Callable[[], bool] = lambda: False

    def message(self, kind: str, body: bytes, **head: Any) -> SignedMessage:
        """A request about the run, for any of its sites."""
        return SignedMessage({"kind": kind, "run": self.run.run_id, **head}, body, self.signer)

    def hello(self) -> SignedMessage:
        """The first request: it announces the run."""
        about = {"study": self.run.study, "nodes": self.run.nodes, "silos": self.run.silos}
        head, body = {"kind": "hello", "run": self.run.run_id}, json.dumps(about).encode()
        return SignedMessage(head, body, self.signer, each=self.witnesses.head)

    def note(self, trouble: Trouble, stage: str | None = None) -> None:
        """Write a trouble down."""
        self.history.add_event(trouble.kind, site=trouble.site, stage=stage, reason=trouble.reason)
        self.history.see_site(trouble.site, state=trouble.kind, note=trouble.reason, seen=False)


class TroubleFound(Exception):  # noqa: N818 - carries a trouble out of a thread
    """A request that ends without an answer."""

    def __init__(self, site: str, kind: TroubleKind, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.trouble = Trouble(site, kind, reason, code)


class NotNeeded(Exception):  # noqa: N818 - no error
    """Nobody waits for the answer any more: the round cannot be completed, or the run must stop."""


@dataclass(slots=True, kw_only=True, eq=False)
class SiteRequest(Generic[T]):
    """One request to one site, sent again until it is answered or the policy ends it."""

    channel: Channel
    site: str
    message: SignedMessage
    parse: Callable[[str, VerifiedMessage], T]  # the answer proper; raises ProtocolError for one not to be believed
    parse_hello: Callable[[str, VerifiedMessage], object]  # the same of an answer to a greeting
    traffic: Traffic
    over: threading.Event  # set once the others' answers are of no use
    largest: int = SMALL_BODY  # bytes of the answer proper
    allowed: Sequence[str] = ()  # refusals that are answers too
    since: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)  # when the site was last in reach
    rejected: int = 0
    waiting_noted: bool = False
    unapproved: float | None = None  # since when it says that it waits for approval
    approval_pause: float = field(default_factory=lambda: APPROVAL_PAUSE)
    version_noted: bool = False
    late: float = 0.0  # when it was last in reach, but silent
    greeted: bool = False
    passing: frozenset[str] = PASSING
    greeting: bool = False  # of processes that may still be coming up

    def answer(self) -> T:
        """The answer, once there is one that can be believed."""
        wait, growth = (HELLO_WAIT, HELLO_GROWTH) if self.greeting else (FIRST_WAIT, 2.0)
        while True:
            if self.over.is_set() or self.channel.stopped():
                raise NotNeeded
            if not self.channel.trust.knows(self.site):
                raise TroubleFound(self.site, "rejected", NO_KEY)
            data, digest = self.message.to(self.site)
            self.traffic.count(down=len(data))
            most = largest_message(self.largest)
            reply = self.channel.transport.ask(self.site, data, wait, most)
            if isinstance(reply, Silence):
                self._bear_silence(reply)
                if reply is Silence.LATE:  # to be out of reach shows at once, and often: no reason to wait for longer
                    wait = min(growth * wait, LONGEST_WAIT)
                continue
            self.heard = time.monotonic()
            if isinstance(reply, Oversized) or len(reply) > most:  # neither hashed nor parsed
                beginning = b"" if isinstance(reply, Oversized) else reply
                self._reject(beginning, ProtocolError(f"message: expected at most {most} bytes, got more."))
                continue
            self.traffic.count(up=len(reply))
            try:
                found = self._verify(reply, digest)
                self._check_version(found)
                if not self._retry_after(found):
                    answer = self.parse(self.site, found)
                    if found.head["kind"] == "answer":
                        self.channel.witnesses.see(self.site, found)
                    version = str(found.head.get("version"))[:LONGEST_VERSION]
                    self.channel.history.see_site(self.site, state="answered", version=version)
                    return answer
            except ProtocolError as error:
                self._reject(reply, error)

    def _bear_silence(self, silence: Silence) -> None:
        now, heard = time.monotonic(), self.heard
        if silence is Silence.LATE:
            self.late = now
        else:
            limit = COMING_UP if self.greeting and silence is not Silence.GONE else GONE_AFTER
            if silence is Silence.UNREACHABLE:
                heard = max(heard, self.late)  # a late site is not out of reach
            if now - heard > limit:
                raise TroubleFound(self.site, "lost", PROCESS_ENDED if silence is Silence.GONE else OUT_OF_REACH)
            time.sleep(REACH_PAUSE)
        self._check_timeout()

    def _check_timeout(self) -> None:
        """After the study's timeout the policy applies; one that waits says so once, and waits on."""
        policy, since, what = self.channel.policy, self.since, "has not answered"
        limit = max(policy.timeout, COMING_UP) if self.greeting else policy.timeout  # coming up is not missing
        if self.unapproved is not None:  # it is up, and its people are waited for
            limit, since, what = policy.timeout, self.unapproved, "has not approved the study"
        if time.monotonic() - since <= limit:
            return
        reason = f"{what} for {limit:g} s"
        if policy.on_missing != "wait":
            raise TroubleFound(self.site, "missing", reason)
        if not self.waiting_noted:
            self.waiting_noted = True
            self.channel.note(Trouble(self.site, "missing", reason + "; waiting for it, as the study says"))

    def _verify(self, data: bytes, digest: str) -> VerifiedMessage:
        """The reply, once it is this site's, to this request."""
        reply = open_message(data, self.channel.trust)
        if reply.sender != self.site:
            raise ProtocolError(f"message: was signed by {reply.sender!r}, but {self.site!r} was asked.")
        if reply.head.get("re") != digest:
            raise ProtocolError("message: replies to another request: an old one, or one of another run.")
        if reply.head.get("run") != self.channel.run.run_id:
            raise ProtocolError("message: belongs to another run.")
        if reply.head.get("kind") not in ("answer", "refusal"):
            raise ProtocolError("message: is neither an answer nor a refusal.")
        return reply

    def _check_version(self, reply: VerifiedMessage) -> None:
        """Refuse a site of a version that does not go with ours, and tell of any other one, once in an attempt."""
        theirs = str(reply.head.get("version"))[:LONGEST_VERSION]
        if told := difference(VERSION, "it", theirs):
            if not go_together(VERSION, theirs):
                raise TroubleFound(self.site, "refused", told.rstrip("."))
            if self.greeting and not self.version_noted:
                self.version_noted = True
                self.channel.history.add_event("note", site=self.site, reason=told)

    def _retry_after(self, reply: VerifiedMessage) -> bool:
        """Whether to send the request again after a refusal; raises when that would not help."""
        if reply.head["kind"] == "answer":
            return False
        code = reply.head.get("code")
        if code in self.allowed:
            return False
        if not isinstance(code, str) or code not in REASONS:
            raise ProtocolError("message: refuses for a reason that silograph does not have.")
        self.channel.history.see_site(self.site, state=code, note=REASONS[code])
        if code not in self.passing:
            raise TroubleFound(self.site, "refused", REASONS[code], code)
        if code == "unapproved" and self.unapproved is None:
            self.unapproved = time.monotonic()
            self.channel.history.add_event("waiting", site=self.site, reason=REASONS[code])
        self._check_timeout()
        if code == "busy" or self.greeted:  # a site that says so at once, and again, is not to keep us busy
            self.over.wait(REACH_PAUSE)
        if code == "unknown-run":  # its process is a new one
            self._greet()
        elif code == "unapproved":
            self.over.wait(self.approval_pause)
            self.approval_pause = min(1.3 * self.approval_pause, LONGEST_APPROVAL_PAUSE)
        return True

    def _greet(self) -> None:
        self.greeted = True
        SiteRequest(
            channel=self.channel,
            site=self.site,
            message=self.channel.hello(),
            parse=self.parse_hello,
            parse_hello=self.parse_hello,
            traffic=self.traffic,
            over=self.over,
            passing=PASSING - {"unknown-run"},  # to whoever greets it, a site cannot say that it does not know the run
        ).answer()

    def _reject(self, data: bytes, error: ProtocolError) -> None:
        """Keep a bad reply's beginning aside with the reason; a site that sends nothing else cannot take part."""
        reason = str(error)[:LONGEST_REASON]
        file = self.channel.quarantine.keep(self.site, data)
        self.channel.history.add_event("rejected", site=self.site, reason=reason, file=file)
        self.rejected += 1
        if self.rejected >= MOST_REJECTED:
            told = f"sent {self.rejected} answers that were not believed: {reason.rstrip('.')}"
            raise TroubleFound(self.site, "rejected", told)
