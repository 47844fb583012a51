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

from silograph._util.documents import parse_json, show
from silograph._util.types import IntVector, Vector
from silograph.errors import ProtocolError
from silograph.federation.coordinator.masking import KeyExchange
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
from silograph.federation.groups import GROUP_FIELDS, check_group_sums, group_units
from silograph.graph.pairs import Pairs
from silograph.methods.common.presence import nodes_of
from silograph.protocol.checks import check_masked, check_opened, check_subtotal, check_update
from silograph.protocol.codec import decode_answer, decode_update, encode_task, largest_update
from silograph.protocol.fixed import MOST_TERMS
from silograph.protocol.messages import Field, Header, Parts, Task, Total, Update, graph_fields, parts_of
from silograph.protocol.method import Cohort, Method, Outcome
from silograph.protocol.sums import Subtotal, add_answers
from silograph.protocol.units import Units

T = TypeVar("T")


class Sites:
    """Sites that are elsewhere. Each has one silo, or answers with the sum over several."""

    def __init__(
        self,
        channel: Channel,
        pairs: Pairs,
        *,
        largest_cost: float = np.inf,
        missing_nodes: bool = False,
        keys: KeyExchange | None = None,
        groups: bool = False,
    ) -> None:
        self.sites, self._pairs = channel.run.silos, pairs
        self.n_silos: dict[str, int] = {}  # of each site, as it said when it was greeted first
        self._largest_cost = largest_cost
        self._missing_nodes = missing_nodes  # whether sites may lack some
        self._keys = keys  # of a masked study
        self._groups = groups  # whether the study ends with sums per group,
        self.per_group: Total | None = None  # and these, once it has
        self.nodes: Mapping[str, IntVector | None] = dict.fromkeys(self.sites) if not missing_nodes else {}
        self.traffic = Traffic()  # of the last exchange
        self._channel = channel
        self._scalars: Mapping[str, float] | None = None  # None: set-up goes on
        self._pool = ThreadPoolExecutor(len(self.sites))

    @property
    def cohort(self) -> Cohort:
        """What everyone knows, once all sites were greeted."""
        n_silos = sum(self.n_silos[site] for site in self.sites)
        return Cohort(pairs=self._pairs, silos=self.sites, n_silos=n_silos, nodes=self._channel.run.nodes)

    def greet(self) -> None:
        """Announce the run to every site, and wait until each is ready and has said how many silos it has."""
        self._ask_all(self._channel.hello(), self._take_hello, greeting=True)
        if (n_silos := self.cohort.n_silos) > MOST_TERMS:
            most = max(self.sites, key=lambda site: self.n_silos[site])
            reason = f"says that it has {self.n_silos[most]} silos; all together {n_silos}, of {MOST_TERMS} at most"
            raise SitesTroubleError([Trouble(most, "rejected", reason)])

    def exchange(self, method: Method, task: Task) -> Total:
        """Ask every site, check every answer, add up; where sums are masked, check what they add up to."""
        keys = self._keys if self._scalars is None else None  # after set-up, nothing that is sent depends on data
        if keys is not None and not keys.is_done:
            self._exchange_keys(keys)
        header = task.header
        fields = method.steps[header.step].up
        units = replace(method.units(task), largest_cost=self._largest_cost)
        message = self._channel.message(
            "round",
            encode_task(task),
            stage=self._stage,
            step=header.step,
            round=header.round,
            n_silos=self.cohort.n_silos,
            scalars=dict(self._scalars or {}),
        )

        def parse(site: str, reply: VerifiedMessage) -> Update | Subtotal:
            return self._parse_answer(site, reply, task, fields, units)

        total = add_answers(self._ask_all(message, parse, largest=self._largest(fields)), fields, units)
        if keys is not None:
            check_opened(total, fields, pairs=self._pairs, units=units, noise=keys.noise)
        return total

    def _exchange_keys(self, keys: KeyExchange) -> None:
        """Ask every site for its key, and bring all of them to each. Nobody was asked for a sum before."""
        largest = keys.terms.largest_statement
        statements = self._ask_all(self._channel.message("key", b""), keys.take, largest=largest)
        together = keys.join(statements, self._pairs, self._channel.run.nodes)
        try:
            self._ask_all(self._channel.message("peers", together), lambda site, reply: None)
        except SitesTroubleError as error:  # a site may have keys of an attempt that was cut short
            again = [replace(one, code="keys") if one.code == "conflict" else one for one in error.troubles]
            raise SitesTroubleError(again) from error
        keys.keep(together)

    def prepare(self, scalars: Mapping[str, float]) -> None:
        """Keep the scalars that set-up found; all further requests carry them."""
        self._scalars = dict(scalars)

    def finish(self, outcome: Outcome) -> Mapping[str, Vector]:
        """Send the sites the consensus and its certificate; receive the graphs of those that give theirs away."""
        header = Header(run=self._channel.run.run_id, method="finish", step="finish", round=1)
        task = Task(header=header, parts={"consensus": outcome.consensus, "certificate": outcome.certificate})
        message = self._channel.message("finish", encode_task(task))
        if self._groups:
            self.per_group = self._sum_groups(message, task)
            return {}
        fields = graph_fields(self._missing_nodes)

        def parse_graph(site: str, reply: VerifiedMessage) -> Parts | None:
            if reply.head.get("code") == "kept":
                return None
            update = decode_update(reply.body, n_pairs=self._pairs.size, most=self._largest(fields))
            _check_speaker(site, update.silo)
            if self.n_silos[site] > 1:
                raise ProtocolError(f"message: {site} has {self.n_silos[site]} silos, and sends a graph of one.")
            check_update(update, task, fields, pairs=self._pairs, units=None)
            return parts_of(update)

        graphs = self._ask_all(message, parse_graph, allowed=("kept",), largest=self._largest(fields))
        sent = {site: parts for site, parts in zip(self.sites, graphs, strict=True) if parts is not None}
        if self._missing_nodes:
            self.nodes = {site: nodes_of(self._pairs, np.asarray(parts["has"])) for site, parts in sent.items()}
        return {site: np.asarray(parts["graph"]) for site, parts in sent.items()}

    def _sum_groups(self, message: SignedMessage, task: Task) -> Total:
        """The sums per group, over all sites."""
        units = group_units(dict(self._scalars or {}))

        def parse(site: str, reply: VerifiedMessage) -> Update | Subtotal:
            answer = self._parse_answer(site, reply, task, GROUP_FIELDS, units)
            opened = add_answers([answer], GROUP_FIELDS, units)
            check_group_sums(opened.parts, task.header, site, n_silos=opened.n_silos, units=units)
            return answer

        return add_answers(self._ask_all(message, parse, largest=self._largest(GROUP_FIELDS)), GROUP_FIELDS, units)

    @property
    def evidence(self) -> Mapping[str, Mapping[str, float]]:
        """Nothing: it stays at the sites."""
        return {}

    def silo_states(self) -> dict[str, Any]:
        """How many silos each site has; what these keep, they keep themselves."""
        return {"n_silos": dict(self.n_silos)}

    def restore(self, method: Method, states: dict[str, Any]) -> None:
        """Raise where a site no longer has as many silos as when the run began: sums of earlier rounds have them."""
        changed = [
            Trouble(site, "rejected", f"says that it has {self.n_silos[site]} silos, and had {before}")
            for site, before in states["n_silos"].items()
            if self.n_silos[site] != before
        ]
        if changed:
            raise SitesTroubleError(changed)

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
                parse_hello=self._take_hello,
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

        answers = list(self._pool.map(ask, self.sites))
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
        return largest_update(fields, self._pairs.size)

    def _take_hello(self, site: str, reply: VerifiedMessage) -> None:
        """How many silos the site has; it is the same whenever it is greeted."""
        try:
            n_silos = parse_json(reply.body)["n_silos"]
        except (ValueError, KeyError) as error:
            raise ProtocolError("message: expected how many silos the site has.") from error
        if type(n_silos) is not int or not 1 <= n_silos <= MOST_TERMS:
            raise ProtocolError(f"message: expected 1 to {MOST_TERMS} silos, got {show(n_silos)}.")
        if self.n_silos.setdefault(site, n_silos) != n_silos:
            raise ProtocolError(f"message: says that it has {n_silos} silos, and had {self.n_silos[site]}.")

    def _parse_answer(
        self, site: str, reply: VerifiedMessage, task: Task, fields: Mapping[str, Field], units: Units
    ) -> Update | Subtotal:
        """The site's answer: of its one silo, or the sum over as many as it said."""
        answer = decode_answer(reply.body, n_pairs=self._pairs.size, most=self._largest(fields))
        n_silos = 1 if isinstance(answer, Update) else answer.n_silos
        _check_speaker(site, answer.silo if isinstance(answer, Update) else answer.source)
        if n_silos != self.n_silos[site]:
            raise ProtocolError(f"message: is a sum over {show(n_silos)} silos; {site} has {self.n_silos[site]}.")
        if self._keys is not None and self._scalars is None:
            if isinstance(answer, Update):
                raise ProtocolError(f"message: {site} sends numbers of its own, where a masked sum was asked for.")
            check_masked(answer, task, fields, pairs=self._pairs)
        elif self._keys is not None and answer.reported:
            raise ProtocolError(f"message: {site} tells numbers of its own, though the study's sums are masked.")
        elif isinstance(answer, Subtotal):
            check_subtotal(answer, task, fields, pairs=self._pairs, units=units)
        else:
            check_update(answer, task, fields, pairs=self._pairs, units=units)
        return answer


def _check_speaker(site: str, speaker: str) -> None:
    if speaker != site:
        raise ProtocolError(f"message: speaks for {speaker[:40]!r}, but {site!r} was asked.")
