"""What a site keeps of a run: its silos' states and its last answer, written before the answer leaves.

One answer is enough: the coordinator writes down a round before it asks the next, so that after any crash it asks for
the round that the site answered last, or for the one after it.

That a run was answered is kept for ever, in a folder of its own: once its state is gone, pushed out by later runs or
removed by hand, its rounds could be asked a second time in another way. Such a run is refused.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.documents import parse_json
from silograph._util.files import write_bytes, write_json
from silograph._util.locks import Lock
from silograph.engine.checkpoint import Checkpoint
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.groups import Told
from silograph.protocol.fixed import Limbs
from silograph.protocol.messages import Header, Parts, Reported, Update, parts_of, update_of
from silograph.protocol.sums import Subtotal

ABOUT, LOCK, ROUNDS, TOLD = "about.json", "lock", "rounds", "told"
NOTED = ("stage", "scalars", "request_digest", "n_silos", "own", "shown")  # of an answer, beside itself
MOST_RUNS_KEPT = 20  # later ones push out earlier ones


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastAnswer:
    """The last answer, and the digest of the request."""

    stage: str
    scalars: Mapping[str, float]  # what set-up found, which holds for the whole of learning
    request_digest: str
    n_silos: int  # of all sites, which holds for the whole run
    answer: Update | Subtotal
    own: Reported  # what silos told here of themselves, by silo; it stays, but for what the answer has of it
    shown: str | None = None  # of a masked sum: the pairs that enough sites have, as packed bits; None: all


class RunStore:
    """One run's folder at a site, held by one process at a time."""

    def __init__(self, site: SiteFolder, run: str, *, about: Mapping[str, Any]) -> None:
        self.folder, self._answered = site.state / run, site.answered / run
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = Lock(self.folder / LOCK)
        # Who had the run before may have removed its folder meanwhile
        if not (self._lock.take(wait=5.0) and (self.folder / LOCK).exists()):
            self._lock.release()
            raise Refused("busy", f"{self.folder}: another process of this site has the run")
        try:
            self._check_about(dict(about))
            os.utime(self.folder)  # used today: `forget_old` takes others first
        except BaseException:
            self._lock.release()
            raise
        self._checkpoint = Checkpoint(self.folder / ROUNDS, run_id=run)
        self._last = Checkpoint(self.folder / TOLD, run_id=run)

    def _check_about(self, about: dict[str, Any]) -> None:
        """A run keeps its study, its silos, its nodes and its data from beginning to end."""
        path = self.folder / ABOUT
        if not path.exists():
            write_json(path, about)
            return
        before = parse_json(path.read_bytes())
        if before.get("data") != about["data"]:
            raise Refused("data-changed", f"{about['file']}: has changed since run {self.folder.name} began")
        if before != about:
            raise Refused("conflict", f"{path}: the run began with another study, other silos or other nodes")

    def load(self) -> tuple[dict[str, Any], LastAnswer] | None:
        """The silos' states as plain data, and the last answer; nothing before the first."""
        kept = self._checkpoint.load()
        if kept is None:
            if self._answered.exists():
                raise Refused("ended", f"run {self.folder.name}: was answered, and its state is gone")
            return None
        self._note_answered()  # a crash may have come before
        about = {name: kept["last"][name] for name in NOTED}
        return kept["silos"], LastAnswer(**about, answer=_restore_answer(kept["answer"]))

    def save(self, silos: Mapping[str, Any], last: LastAnswer) -> None:
        """Write down both, whole or not at all."""
        about = {name: getattr(last, name) for name in NOTED}
        self._checkpoint.save({"silos": dict(silos), "last": about, "answer": _plain_answer(last.answer)})
        self._note_answered()

    def load_told(self) -> Told | None:
        """The sums per group that the run ended with; nothing before."""
        kept = self._last.load()
        if kept is None:
            return None
        answer = _restore_answer(kept["answer"])
        assert isinstance(answer, Subtotal)
        return Told(digest=kept["digest"], answer=answer)

    def save_told(self, told: Told) -> None:
        """Write them down before they leave: they are told once."""
        self._last.save({"digest": told.digest, "answer": _plain_answer(told.answer)})

    def _note_answered(self) -> None:
        if not self._answered.exists():
            self._answered.parent.mkdir(exist_ok=True)
            write_bytes(self._answered, durable=True)

    def end(self) -> None:
        """Answer nothing of this run any more."""
        if (rounds := self.folder / ROUNDS).exists():
            shutil.rmtree(rounds)

    def close(self) -> None:
        """Let another process have the run. One that was only announced, or has ended, leaves nothing here."""
        if not (self.folder / ROUNDS).exists():
            shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.release()


def _plain_answer(answer: Update | Subtotal) -> dict[str, Any]:
    """An answer for the checkpoint, whose arrays are of float64: limbs are kept by their bits."""
    about: dict[str, Any] = {"header": asdict(answer.header), "reported": dict(answer.reported)}
    if isinstance(answer, Update):
        return about | {"silo": answer.silo, "n_silos": None, "parts": dict(parts_of(answer))}
    parts = {name: part if isinstance(part, int) else part.view(np.float64) for name, part in answer.parts.items()}
    return about | {"silo": answer.source, "n_silos": answer.n_silos, "parts": parts}


def _restore_answer(kept: Mapping[str, Any]) -> Update | Subtotal:
    header, silo, reported = Header(**kept["header"]), kept["silo"], kept["reported"]
    if kept["n_silos"] is None:
        parts: Parts = kept["parts"]
        return update_of(header, silo, parts, reported=reported)
    sums: dict[str, int | Limbs] = {
        name: part if isinstance(part, int) else part.view(np.uint64) for name, part in kept["parts"].items()
    }
    return Subtotal(header=header, source=silo, n_silos=kept["n_silos"], parts=sums, reported=reported)


def version_in(folder: Path, run: str) -> str | None:
    """The version of the table that a run began with, if it is known here."""
    path = folder / run / ABOUT
    return str(parse_json(path.read_bytes()).get("data")) if path.exists() else None


def forget_old(folder: Path) -> None:
    """Keep the latest runs only, and those that a process has. Those without an answer go first."""
    runs = [entry for entry in folder.iterdir() if entry.is_dir()]
    runs.sort(key=lambda entry: ((entry / ROUNDS).exists(), entry.stat().st_mtime))
    for old in runs[:-MOST_RUNS_KEPT]:
        lock = Lock(old / LOCK)
        if lock.take():
            shutil.rmtree(old, ignore_errors=True)
            lock.release()
