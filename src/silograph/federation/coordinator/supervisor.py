"""Bring a run to its end, whatever dies on the way: submit a job, watch it, submit it again from the last checkpoint.

The run's folder counts, not the engine's word: an engine that was killed may call a job running for ever. A job is at
work while a process holds the run's lock, and over once it has said how it ended. A job that has begun, and neither
holds the lock nor said anything, was killed. If another supervisor's job is at work on the run, this one watches it and
does not begin a second.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

from silograph._util.locks import is_held
from silograph.errors import CheckpointError, SilographError, SilosError
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.request import NO_KEY, OUT_OF_REACH
from silograph.federation.coordinator.run import CoordinatorRun, Outcome
from silograph.federation.coordinator.states import Phase, phase_of
from silograph.federation.members import is_revoked
from silograph.federation.study_file import Policy

JobState = Literal["waiting", "running", "ended"]
T = TypeVar("T")

POLL_SECONDS = 0.25
STARTUP_SECONDS = 60.0  # that the process of a job may take to come up, once the engine calls the job running
ABORT_SECONDS = 15.0  # for the engine to end a job that is given up
NOTICE_SECONDS = 10.0  # before a person hears that the server does not answer
LONGEST_RETRY_PAUSE = 30.0  # seconds between two attempts that bring nothing
MOST_START_REFUSALS = 8  # in a row, of the engine to start a job
MOST_GENERATIONS = 20  # of a run: sites that never keep their keys for long enough are a fault, not bad luck
FRESH_SECONDS = 20.0  # since a site was last heard of, up to which it counts as connected


class ServerAwayError(SilographError):
    """The server does not answer."""


class MissingSitesError(SilosError):
    """Sites are missing, and the study's policy says to stop."""


class Host(Protocol):
    """All that the supervisor asks of an engine."""

    def submit(self, runs: Sequence[str], sites: Sequence[str]) -> str:
        """Submit a job; its name."""

    def state(self, job: str) -> JobState:
        """How a job is."""

    def reason(self, job: str) -> str:
        """The engine's reason why a job did not even start; empty if it did."""

    def abort(self, job: str) -> None:
        """End a job."""

    def connected(self) -> Mapping[str, float]:
        """The sites that the engine knows, and when it last heard of each (seconds since 1970)."""


Tell = Callable[[str], None]


class Supervisor:
    """One run, from where it is to its end. `on_poll` is called several times a second, and may raise to leave it."""

    def __init__(self, run: CoordinatorRun, host: Host, *, tell: Tell, on_poll: Callable[["Supervisor"], None]) -> None:
        self.run = run
        self._host, self._tell, self._on_poll = host, tell, on_poll
        self._policy: Policy = run.study().policy
        self._away: dict[str, float] = {}  # site → since when it has been missing
        self._lost: dict[str, float] = {}  # site → since when its processes have been lost, again and again
        self._unheard: dict[str, float] = {}  # site → when it was out of reach last (seconds since 1970)
        self._pause_next = 0.0  # seconds before the next attempt
        self._refusals = 0
        self._job: str | None = None
        self._silent: float | None = None  # since when the server has not answered,
        self._silence_told = False  # and whether that was said

    def finish(self) -> CoordinatorRun:
        """Bring the run to its end; raises when that cannot be."""
        try:
            while not _is_done(self.run.outcome()):
                self._attempt()
        except BaseException:
            if self._job is not None:
                self._host.abort(self._job)
            raise
        return self.run

    def phase(self) -> tuple[Phase, tuple[str, ...]]:
        """What the run does or waits for now, and for which sites."""
        held = is_held(self.run.lock)
        with History.open_read(self.run.history) as history:
            began, known = history.last_start(), {site.name: site for site in history.sites()}
        silent, away = self._silent is not None, tuple(self._away)
        return phase_of(held=held, began=began, sites=self.run.sites, known=known, silent=silent, away=away)

    def _attempt(self) -> None:
        rounds = self._n_rounds()
        self._job = self._running_job() or self._submit()
        if self._job is None:
            return
        why = self._watch(self._job)
        job, self._job = self._job, None
        outcome = self.run.outcome()
        self._set_pause(progress=self._n_rounds() > rounds)
        if outcome is not None and (outcome.attempt == job or _is_done(outcome)):
            self._act_on(outcome)
        elif why is not None:
            self._report_silent_end(why, self._ask_until_answered(lambda: self._host.reason(job)))

    def _running_job(self) -> str | None:
        """The job that has the run in hand already, because its supervisor was killed."""
        while self._is_conducted():
            jobs = self._started_jobs()
            if jobs:
                return jobs[-1]
            self._pause()
        return None

    def _submit(self) -> str | None:
        """A new job; none when the run was changed meanwhile."""
        if not self._check_sites():
            return None
        self._pause(self._pause_next)
        return self._ask_until_answered(lambda: self._host.submit([self.run.name], self.run.sites))

    def _report_silent_end(self, why: str, reason: str) -> None:
        """A job that ended without a word: something was killed, or the engine did not let it start."""
        self._refusals = self._refusals + 1 if reason else 0
        if self._refusals >= MOST_START_REFUSALS:
            raise CheckpointError(f"The engine does not start the run: {reason}. See the logs, then go on.")
        end = f"could not be started ({reason})" if reason else why
        self._tell(f"The run's process {end}; the run goes on from its last round.")

    def _set_pause(self, *, progress: bool) -> None:
        """Pause before the next attempt, if this one brought nothing."""
        if progress:
            self._pause_next, self._lost = 0.0, {}
        else:
            self._pause_next = min(max(1.0, 2 * self._pause_next), LONGEST_RETRY_PAUSE)

    # --- a job ----------------------------------------------------------------------------------------------------

    def _watch(self, job: str) -> str | None:
        """Until the job has said how it ended, or nothing is at work on the run any more; then why, if that is news."""
        waiting = time.monotonic()
        while True:
            # In this order: a process takes the lock, begins, says how it ended, and lets go
            started, held, outcome = job in self._started_jobs(), self._is_conducted(), self.run.outcome()
            if _is_done(outcome) or (outcome is not None and outcome.attempt == job) or (started and not held):
                self._end(job, outcome)
                return "was killed"
            state = None if held else self._ask(lambda: self._host.state(job))  # who is at work is left in peace
            if state in ("waiting", None):
                waiting = time.monotonic()
            elif state == "ended":
                return "was ended by the engine before it began, as when the server or a site is started anew"
            elif time.monotonic() - waiting > STARTUP_SECONDS:
                self._end(job, outcome)
                return f"did not come up within {STARTUP_SECONDS:g} s"
            if state == "waiting" and not self._check_sites(wait=False):  # which says so itself
                self._end(job, outcome)
                return None
            self._pause()

    def _end(self, job: str, outcome: Outcome | None) -> None:
        """See to it that the engine ends a job, too; one that has not begun must not begin any more."""
        if _is_done(outcome):  # ends by itself
            return
        deadline = time.monotonic() + ABORT_SECONDS
        while self._ask_until_answered(lambda: self._host.state(job)) != "ended" and time.monotonic() < deadline:
            self._host.abort(job)
            if job in self._started_jobs():
                return
            self._pause()

    def _started_jobs(self) -> list[str]:
        """The jobs that had this run in hand, from the first to the last."""
        with History.open_read(self.run.history) as history:
            return [event.reason or "" for event in history.events() if event.kind in ("started", "resumed")]

    def _is_conducted(self) -> bool:
        """Whether a process has the run in hand."""
        return is_held(self.run.lock)

    def _ask_until_answered(self, act: Callable[[], T]) -> T:
        """Act once the server answers; a server that is down is waited for."""
        while (answer := self._ask(act)) is None:
            self._pause()
        return answer

    def _ask(self, act: Callable[[], T]) -> T | None:
        """Act; nothing while the server does not answer."""
        now = time.monotonic()
        try:
            answer = act()
        except ServerAwayError:
            self._silent = self._silent or now
            if now - self._silent > NOTICE_SECONDS and not self._silence_told:
                self._silence_told = True
                self._tell("The server does not answer its conductor; waiting for it.")
            return None
        self._silent, self._silence_told = None, False
        return answer

    def _pause(self, seconds: float = POLL_SECONDS) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._on_poll(self)
            time.sleep(POLL_SECONDS)

    def _n_rounds(self) -> int:
        with History.open_read(self.run.history) as history:
            return len(history.rounds())

    # --- the policy -----------------------------------------------------------------------------------------------

    def _check_sites(self, *, wait: bool = True) -> bool:
        """Whether all sites of the run are connected; waits for those that are not, as long as the policy says."""
        while True:
            if revoked := [site for site in self.run.sites if is_revoked(self.run.federation, site)]:
                self._act_on_final(dict.fromkeys(revoked, NO_KEY))
                return False
            missing = self._missing_sites()
            if missing == []:
                return True
            now = time.monotonic()
            gone = [site for site in missing or () if now - self._away[site] > self._policy.timeout]
            if gone and self._policy.on_missing != "wait":
                self._leave_out(dict.fromkeys(gone, f"was not connected for {self._policy.timeout:g} s"))
                return False
            if not wait:
                return True
            self._pause()

    def _missing_sites(self) -> list[str] | None:
        """The sites that are not connected; nobody knows while the server does not answer."""
        there = self._ask(self._host.connected)
        if there is None:
            return None
        missing = [site for site in self.run.sites if not self._is_connected(site, there.get(site, 0.0))]
        for site in missing:
            if site not in self._away:
                self._tell(f"{site} is not connected; waiting for it.")
                self._away[site] = time.monotonic()
        for site in [site for site in self._away if site not in missing]:
            del self._away[site]
        return missing

    def _is_connected(self, site: str, heard: float) -> bool:
        """Heard of lately, and since it was out of reach: the server takes a while to miss a site."""
        now = time.time()
        since = min(self._unheard.get(site, 0.0), now - POLL_SECONDS)  # later than now it is if the clock was put back
        return heard > max(now - FRESH_SECONDS, since)

    def _act_on(self, outcome: Outcome) -> None:
        """Act on the end of an attempt: go on, begin anew, stop, or leave sites out."""
        if outcome.ended in ("done", "stopped"):
            return
        if outcome.ended == "failed":
            raise CheckpointError(f"The run cannot go on: {outcome.message}")
        for trouble in outcome.troubles:
            self._tell(f"{trouble['site']}: {trouble['reason']}.")
            if trouble["reason"] == OUT_OF_REACH:
                self._unheard[trouble["site"]] = time.time()
        if forgetful := [trouble["site"] for trouble in outcome.troubles if trouble.get("code") == "keys"]:
            self._begin_anew(forgetful)
            return
        lasting = [trouble for trouble in outcome.troubles if trouble["kind"] != "lost" or self._lost_too_long(trouble)]
        final = {trouble["site"]: trouble["reason"] for trouble in lasting}
        if final:
            self._act_on_final(final)

    def _act_on_final(self, final: Mapping[str, str]) -> None:
        """Stop, or go on without sites that no waiting brings back."""
        if self._policy.on_missing in ("wait", "stop"):
            raise MissingSitesError(_list_reasons(final) + " The run is kept: when that is cured, go on with --resume.")
        self._leave_out(final)

    def _begin_anew(self, sites: Sequence[str]) -> None:
        """A new generation with the same sites: masks made of keys that are gone cannot be made again."""
        named = ", ".join(sites)
        if self.run.generation >= MOST_GENERATIONS:
            raise CheckpointError(
                f"The run was begun anew {MOST_GENERATIONS - 1} times, because sites lost their keys before the sum "
                f"was whole, {named} last. Find out there why processes end (silograph site log), then start it anew."
            )
        self.run = self.run.begin_anew()
        with History(self.run.history) as history:
            history.forget_rounds()
            for site in sites:
                history.add_event("new-keys", site=site, reason="its keys were gone before the masked sum was whole")
        self._away, self._lost, self._pause_next = {}, {}, 0.0
        self._tell(f"The run begins anew with the same sites and new keys, because those of {named} are gone.")

    def _lost_too_long(self, trouble: Mapping[str, str]) -> bool:
        """Whether a site whose process is lost has been lost for so long that the policy applies."""
        since = self._lost.setdefault(trouble["site"], time.monotonic())
        return self._policy.on_missing != "wait" and time.monotonic() - since > self._policy.timeout

    def _leave_out(self, gone: Mapping[str, str]) -> None:
        """Go on without these sites, if the policy allows it and enough are left."""
        reasons = _list_reasons(gone)
        if self._policy.on_missing == "stop":
            raise MissingSitesError(f"{reasons} The study says to stop then. The run is kept, and can go on later.")
        left = len(self.run.sites) - len(gone)
        needed = self._policy.needed(len(self.run.sites))
        if left < needed:
            raise MissingSitesError(f"{reasons} Only {left} sites are left, and the study asks for {needed}.")
        self.run = self.run.leave_out(gone)
        with History(self.run.history) as history:
            history.forget_rounds()
            for site, reason in gone.items():
                history.add_event("left-out", site=site, reason=reason)
        self._away, self._lost, self._pause_next = {}, {}, 0.0
        self._tell(f"{reasons} As the study says, the run begins anew with the {left} sites left.")


def _list_reasons(reasons: Mapping[str, str]) -> str:
    return " ".join(f"{site}: {reason}." for site, reason in reasons.items())


def _is_done(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.ended == "done"
