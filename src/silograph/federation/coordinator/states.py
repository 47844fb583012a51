"""How a run is, and where its time went: pure functions of what was written down.

A run is, by this evidence,

- *done*: an attempt has written the results;
- *abandoned*: the lead gave it up (the last order says so);
- *stopped*: the conductor left it after the last order, and said why; a person cures that, and orders it anew;
- *waiting*: it is wanted, and nothing computes: for approvals, for sites that are missing, for the server or its
  conductor, for processes that come up, or for its turn;
- *running*: a process computes, or asks sites that do.

While a run is wanted, the conductor looks at it several times a second, and adds the time since it looked last to the
phase that it was in. So the times of all phases add up to the time that the run was wanted, over all attempts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from silograph.federation.coordinator.history import Site

Phase = Literal["computing", "starting", "approval", "sites", "server", "turn"]
State = Literal["running", "waiting", "stopped", "abandoned", "done"]

MOST_AT_ONCE = 4  # runs in hand; each has processes at the server and at its sites
LONGEST_GAP = 20.0  # seconds between two looks; in a longer one, nobody conducted the run: the server was away
FOR_WHAT: Mapping[Phase, str] = {
    "starting": "processes that start, and read their data",
    "approval": "the approval of {sites}",
    "sites": "{sites}, not connected or silent",
    "server": "the server, which does not answer its conductor",
    "turn": f"its turn: {MOST_AT_ONCE} others run, or wait",
}
NO_CONDUCTOR = "the server's conductor, which `silograph federation start` keeps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the lead wants of a run."""

    number: int  # 1, 2, … of each run
    wanted: bool  # that it be brought to its end; or given up
    at: float  # seconds since 1970, as all times here


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Why the conductor left a run that is not done."""

    order: int  # the order that it followed
    message: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What the conductor sees of a run, and the seconds of each phase so far."""

    phase: Phase
    sites: tuple[str, ...]  # that are waited for
    since: float  # when the phase began
    at: float  # when the conductor looked last
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that tells how a run is."""

    done: bool  # whether an attempt has written the results
    order: Order | None
    end: End | None
    watch: Watch | None
    conducted: bool  # whether the conductor has it in hand
    conductor: bool  # whether there is a conductor


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """How a run is, in a word, and why in more."""

    name: State
    why: str = ""  # what is waited for, or why it stopped
    phase: Phase | None = None  # of one that is running or waiting
    since: float | None = None


def state_of(evidence: Evidence) -> RunState:
    """How a run is."""
    order, end, watch = evidence.order, evidence.end, evidence.watch
    if evidence.done:
        return RunState(name="done")
    if order is None:
        return RunState(name="stopped", why="nobody has ordered it")
    if not order.wanted:
        return RunState(name="abandoned", why="given up by the lead", since=order.at)
    if end is not None and end.order == order.number:
        return RunState(name="stopped", why=end.message, since=end.at)
    if not evidence.conductor:
        return RunState(name="waiting", why=NO_CONDUCTOR, phase="server", since=None if watch is None else watch.at)
    if watch is None or not (evidence.conducted or watch.phase == "turn"):
        return RunState(name="waiting", why="the conductor, which takes it in hand", phase="starting", since=order.at)
    if watch.phase == "computing":
        return RunState(name="running", phase="computing", since=watch.since)
    why = FOR_WHAT[watch.phase].format(sites=", ".join(watch.sites))
    return RunState(name="waiting", why=why, phase=watch.phase, since=watch.since)


def phase_of(
    *, held: bool, began: float, sites: Sequence[str], known: Mapping[str, Site], silent: bool, away: Sequence[str]
) -> tuple[Phase, tuple[str, ...]]:
    """What a wanted run of `sites` does or waits for, and for which of them.

    `held`: a process has it in hand, since `began`, and wrote what is `known` of them. Else: the server is `silent`,
    sites are `away`.
    """
    if not held:
        if silent:
            return "server", ()
        return ("sites", tuple(away)) if away else ("starting", ())
    fresh = [site for site in sites if site in known and (known[site].last_seen or 0.0) >= began]
    if unapproved := tuple(site for site in fresh if known[site].state == "unapproved"):
        return "approval", unapproved
    if missing := tuple(site for site in sites if site in known and known[site].state == "missing"):
        return "sites", missing
    return ("computing", ()) if len(fresh) == len(sites) else ("starting", ())


def look_on(before: Watch | None, phase: Phase, sites: tuple[str, ...], *, now: float, wanted_since: float) -> Watch:
    """The next look: the time since the last one goes to the phase that the run was in, or to the server's absence."""
    if before is None:
        before = Watch(phase="starting", sites=(), since=wanted_since, at=wanted_since, seconds={})
    elif before.at < wanted_since:  # in between it was stopped, or given up
        before = replace(before, at=wanted_since)
    gap = max(0.0, now - before.at)
    spent: Phase = before.phase if gap <= LONGEST_GAP else "server"
    seconds = {**before.seconds, spent: before.seconds.get(spent, 0.0) + gap}
    same = (before.phase, before.sites) == (phase, sites)
    return Watch(phase=phase, sites=sites, since=before.since if same else now, at=now, seconds=seconds)
