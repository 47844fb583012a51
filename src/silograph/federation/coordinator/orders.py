"""What the lead wants of a run, what the conductor sees, and why it left it: three small files in the run's folder.

order.json    the lead's last order
watch.json    what the conductor saw last, and how long each phase was; written every few seconds
end.json      why the conductor left a run that is not done
"""

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar, get_args

from silograph._util.documents import parse_json
from silograph._util.files import write_json
from silograph._util.locks import Lock, is_held
from silograph._util.plain import restore
from silograph.errors import CheckpointError
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.run import CoordinatorRun
from silograph.federation.coordinator.states import End, Evidence, Order, Phase, RunState, Watch, look_on, state_of
from silograph.federation.folders import FederationFolder
from silograph.runs.record import TimesRecord

T = TypeVar("T")

ORDER, WATCH, END = "order.json", "watch.json", "end.json"


def read_order(run: CoordinatorRun) -> Order | None:
    """The lead's last order; nothing if there was none."""
    return _read(Order, run.folder / ORDER)


def order_stamp(run: Path) -> int:
    """Another number whenever there is another order for the run in a folder; 0 if there is none."""
    try:
        return (run / ORDER).stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def give_order(run: CoordinatorRun, *, wanted: bool) -> Order:
    """Order that a run be brought to its end, or given up."""
    before = read_order(run)
    order = Order(number=1 if before is None else before.number + 1, wanted=wanted, at=time.time())
    write_json(run.folder / ORDER, asdict(order))
    return order


def is_given_up(run: CoordinatorRun) -> bool:
    """Whether the lead has given the run up."""
    order = read_order(run)
    return order is not None and not order.wanted


def is_due(run: CoordinatorRun) -> bool:
    """Whether a conductor has to take the run in hand."""
    order, end, outcome = read_order(run), read_end(run), run.outcome()
    wanted = order is not None and order.wanted and (end is None or end.order != order.number)
    return wanted and not (outcome is not None and outcome.ended == "done")


def read_end(run: CoordinatorRun) -> End | None:
    """Why the conductor left the run, if it did."""
    return _read(End, run.folder / END)


def write_end(run: CoordinatorRun, order: Order, message: str) -> None:
    """Write down why the conductor leaves the run."""
    write_json(run.folder / END, asdict(End(order=order.number, message=message, at=time.time())))


def read_watch(run: CoordinatorRun) -> Watch | None:
    """What the conductor saw last."""
    return _read(Watch, run.folder / WATCH)


def write_watch(run: CoordinatorRun, watch: Watch) -> None:
    """Write down what the conductor sees."""
    write_json(run.folder / WATCH, asdict(watch))


def read_state(run: CoordinatorRun) -> RunState:
    """How a run is."""
    outcome = run.outcome()
    return state_of(
        Evidence(
            done=outcome is not None and outcome.ended == "done",
            order=read_order(run),
            end=read_end(run),
            watch=read_watch(run),
            conducted=is_held(run.supervisor_lock),
            conductor=is_held(run.federation.conductor_lock),
        )
    )


def read_times(run: CoordinatorRun, *, now: float | None = None) -> TimesRecord:
    """Where the time of a run went, until `now` or the last look; one without a conductor only computes."""
    order, watch = read_order(run), read_watch(run)
    if now is not None:
        phase, sites = ("computing", ()) if watch is None else (watch.phase, watch.sites)
        if watch is None or order is None:
            watch = Watch(phase="computing", sites=(), since=run.begun, at=run.begun, seconds={})
        watch = look_on(watch, phase, sites, now=now, wanted_since=run.begun if order is None else order.at)
    seconds: Mapping[str, float] = {} if watch is None else watch.seconds
    spent = {phase: round(seconds.get(phase, 0.0), 3) for phase in get_args(Phase)}
    return TimesRecord(**spent, total=round(sum(seconds.values()), 3))


def note(run: CoordinatorRun, text: str) -> None:
    """Tell all who look on."""
    with History(run.history) as history:
        history.add_event("note", reason=text)


def conductor_of(federation: FederationFolder) -> Lock:
    """Held by the conductor of a federation's runs."""
    return Lock(federation.conductor_lock)


def _read(kind: type[T], path: Path) -> T | None:
    try:
        data: dict[str, Any] = parse_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error}). Remove the file; the run is then asked anew."
        ) from error
    found: T | None = restore(kind, data)
    return found
