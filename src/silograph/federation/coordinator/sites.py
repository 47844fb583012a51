"""The engine of a federation of real sites: send each a request, check each answer, add up.

How bytes travel is the transport's affair (NVFlare, or a function call in tests). What is in them, who sent them, which
answer belongs to which request, and what to do about a site that does not answer, is decided here and in request.py,
the same for all.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from silograph._util.types import IntVector, Vector
from silograph.errors import ProtocolError
from silograph.federation.coordinator.request import (
    SMALL_BODY,
    Channel,
    NotNeeded,
    SiteRequest,
    SitesTroubleError,
    StoppedError,
    Traffic,
    Trouble,
    TroubleFound,
)
from silograph.federation.envelope import SignedMessage, VerifiedMessage
from silograph.methods.common.presence import nodes_of
from silograph.protocol.checks import check_update
from silograph.protocol.codec import decode_update, encode_task, largest_update
from silograph.protocol.messages import Field, Header, Parts, Task, Total, Update, graph_fields, parts_of
from silograph.protocol.method import Cohort, Method
from silograph.protocol.sums import add_up
from silograph.protocol.units import Units

T = TypeVar("T")


class Sites:
    """Sites that are elsewhere."""

    def __init__(
        self, channel: Channel, cohort: Cohort, *, largest_cost: float = np.inf, missing_nodes: bool = False
    ) -> None:
        self.cohort = cohort
        self._largest_cost = largest_cost
        self._missing_nodes = missing_nodes  # whether sites may lack some
        self.nodes: Mapping[str, IntVector | None] = dict.fromkeys(cohort.silos) if not missing_nodes else {}
        self.traffic = Traffic()  # of the last exchange
        self._channel = channel
        self._scalars: Mapping[str, float] | None = None  # None: set-up goes on
        self._pool = ThreadPoolExecutor(cohort.n_silos)

    def greet(self) -> None:
        """Announce the run to every site, and wait until each is ready."""
        self._ask_all(self._channel.hello(), lambda site, reply: None, greeting=True)

    def exchange(self, method: Method, task: Task) -> Total:
        """Ask every site, check every answer, add up."""
        header = task.header
        fields = method.steps[header.step].up
        units = replace(method.units(task), largest_cost=self._largest_cost)
        message = self._channel.message(
            "round",
            encode_task(task),
            stage=self._stage,
            step=header.step,
            round=header.round,
            scalars=dict(self._scalars or {}),
        )

        def parse(site: str, reply: VerifiedMessage) -> Update:
            return self._parse_update(site, reply, task, fields, units)

        return add_up(self._ask_all(message, parse, largest=self._largest(fields)), fields, units)

    def prepare(self, scalars: Mapping[str, float]) -> None:
        """Keep the scalars that set-up found; all further requests carry them."""
        self._scalars = dict(scalars)

    def finish(self, consensus: Vector) -> Mapping[str, Vector]:
        """Send the sites the consensus; receive the graphs of those that give theirs away."""
        header = Header(run=self._channel.run.run_id, method="finish", step="finish", round=1)
        task = Task(header=header, parts={"consensus": consensus})
        fields = graph_fields(self._missing_nodes)
        message = self._channel.message("finish", encode_task(task))

        def parse_graph(site: str, reply: VerifiedMessage) -> Parts | None:
            if reply.head.get("code") == "kept":
                return None
            return parts_of(self._parse_update(site, reply, task, fields, None))

        graphs = self._ask_all(message, parse_graph, allowed=("kept",), largest=self._largest(fields))
        sent = {site: parts for site, parts in zip(self.cohort.silos, graphs, strict=True) if parts is not None}
        if self._missing_nodes:
            self.nodes = {site: nodes_of(self.cohort.pairs, np.asarray(parts["has"])) for site, parts in sent.items()}
        return {site: np.asarray(parts["graph"]) for site, parts in sent.items()}

    @property
    def evidence(self) -> Mapping[str, Mapping[str, float]]:
        """Nothing: it stays at the sites."""
        return {}

    def silo_states(self) -> dict[str, Any]:
        """Nothing: what silos keep, they keep themselves."""
        return {}

    def restore(self, method: Method, states: dict[str, Any]) -> None:
        """Nothing to do: sites know where they are."""

    def close(self) -> None:
        """Let the threads go."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def _stage(self) -> str:
        return "setup" if self._scalars is None else "learn"

    def _ask_all(
        self,
        message: SignedMessage,
        parse: Callable[[str, VerifiedMessage], T],
        *,
        allowed: Sequence[str] = (),
        greeting: bool = False,
        largest: int = SMALL_BODY,
    ) -> list[T]:
        """Every site's answer, in the order of sites; raises with all troubles together."""
        started = time.monotonic()
        self.traffic, over = Traffic(), threading.Event()

        def ask(site: str) -> T | Trouble | NotNeeded:
            request = SiteRequest(
                channel=self._channel,
                site=site,
                message=message,
                parse=parse,
                traffic=self.traffic,
                over=over,
                allowed=allowed,
                greeting=greeting,
                largest=largest,
            )
            try:
                return request.answer()
            except TroubleFound as found:
                if found.trouble.kind != "missing":
                    over.set()  # nobody waits for the others: the round cannot be completed
                return found.trouble
            except NotNeeded as cut_short:
                return cut_short

        answers = list(self._pool.map(ask, self.cohort.silos))
        self.traffic.seconds = time.monotonic() - started
        troubles = [answer for answer in answers if isinstance(answer, Trouble)]
        for trouble in troubles:
            self._channel.note(trouble, self._stage)
        if troubles:
            raise SitesTroubleError(troubles)
        if any(isinstance(answer, NotNeeded) for answer in answers):
            raise StoppedError("The run was stopped.")
        return [answer for answer in answers if not isinstance(answer, Trouble | NotNeeded)]

    def _largest(self, fields: Mapping[str, Field]) -> int:
        return largest_update(fields, self.cohort.pairs.size)

    def _parse_update(
        self, site: str, reply: VerifiedMessage, task: Task, fields: Mapping[str, Field], units: Units | None
    ) -> Update:
        update = decode_update(reply.body, n_pairs=self.cohort.pairs.size, most=self._largest(fields))
        if update.silo != site:
            raise ProtocolError(f"message: speaks for {update.silo[:40]!r}, but {site!r} was asked.")
        check_update(update, task, fields, pairs=self.cohort.pairs, units=units)
        return update
