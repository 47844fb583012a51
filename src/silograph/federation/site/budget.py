"""What a site has opened of its data so far, over all versions of them and all studies: written down before it leaves.

    budget.jsonl    a line for each opening (openings.py), in the site's folder
    audit.jsonl     an entry `spent` for each line, with its number and SHA-256

A line is on the disk first, then its entry. After a crash between the two, the entry is made when the file is read the
next time. So a file that lacks a line of which the log tells, or has another, was restored from an older copy or
altered. Then the site refuses, until `silograph site restored`: what the log knows of is then spent again (`accept`).

A folder of an earlier silograph has no such file. What its ledger says was answered, was told open and without noise.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from silograph._util.files import write_bytes
from silograph._util.locks import locked
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.approvals import Approvals
from silograph.federation.site.audit import AuditLog, entries
from silograph.federation.site.ledger import Ledger
from silograph.federation.site.openings import (
    NO_ENTRY,
    Line,
    Opening,
    distinct,
    entry_of,
    make_lines,
    opening_in,
    read_lines,
    salvage,
)
from silograph.federation.site.settings import SiteSettings
from silograph.federation.site.spending import check_opening, is_known

SPENT = "spent"


class Budget:
    """The openings of one site. Any number of processes may charge: nothing is kept in memory but where to look."""

    def __init__(self, folder: Path) -> None:
        self._folder = SiteFolder(folder)
        self._path, self._log = self._folder.budget, AuditLog(self._folder.audit_log)
        self._noted: tuple[int, str] | None = None  # number and digest of the last line of which the log tells
        self._searched = 0  # how far the log was searched for it

    def lines(self) -> list[Line]:
        """All openings as they were written down; refuses where the file is not what the log says."""
        with self._held():
            return self._load()

    def openings(self) -> list[Opening]:
        """The same, without their places in the file."""
        return [line.opening for line in self.lines()]

    def check(self, opening: Opening, settings: SiteSettings, *, despite: bool = False) -> None:
        """Refuse what the site's limits do not allow, or what shows other sites."""
        check_opening(opening, self.openings(), settings, despite=despite)

    def charge(self, opening: Opening, settings: SiteSettings, *, run: str, despite: bool = False) -> bool:
        """Check once more, and write the opening down before anything leaves; whether it cost anything.

        The same opening costs nothing a second time: the same bytes leave.
        """
        with self._held():
            lines = self._load()
            earlier = [line.opening for line in lines]
            check_opening(opening, earlier, settings, despite=despite)
            if is_known(opening, earlier):
                return False
            self._append(lines[-1] if lines else None, replace(opening, run=run))
            return True

    # --- a file that is not what the log says -------------------------------------------------------------------------

    def problem(self) -> str | None:
        """Why the file is not what the log says, if it is not."""
        try:
            self.lines()
        except Refused as refusal:
            return refusal.detail
        return None

    def accept(self, *, by: str) -> tuple[int, Path | None]:
        """Go on after a restored or altered file: with all that it still tells, and all that the log tells.

        Returns how many openings came back from the log, and where the file of before is kept.
        """
        with self._held():
            data = self._path.read_bytes() if self._path.exists() else b""
            here = salvage(data)
            told = [(opening, str(entry["time"])) for entry in self._spent() if (opening := opening_in(entry))]
            times = {opening.key: when for opening, when in reversed([*here, *told])}
            kept = distinct([opening for opening, _ in (*here, *told)])
            kept.sort(key=lambda opening: times[opening.key])
            n_lost = len(set(kept) - {opening for opening, _ in here})
            aside = self._path.with_name(f"budget.{time.time_ns()}.jsonl") if data else None
            if aside is not None:
                write_bytes(aside, data, durable=True)
            detail = f"the budget goes on with {len(kept)} openings, {n_lost} of them from the log"
            self._log.append({"what": "restored", "by": by, "detail": detail}, durable=True)
            self._write([(opening, times[opening.key]) for opening in kept])
            return n_lost, aside

    # --- reading ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _held(self) -> Iterator[None]:
        with locked(self._folder.budget_lock):
            yield

    def _load(self) -> list[Line]:
        number, digest = self._last_noted()
        if not self._path.exists() and not number:
            return self._migrate()
        data = self._path.read_bytes() if self._path.exists() else b""
        lines, problem = read_lines(data)
        if problem is not None:
            raise Refused("restored", f"{self._path.name}, {problem}: it was altered")
        if number > len(lines):
            lacks = f"has {len(lines)} openings, the audit log tells of {number}"
            raise Refused("restored", f"{self._path.name}: {lacks}: it was restored from an older copy, or cut off")
        if number and lines[number - 1].digest != digest:
            raise Refused("restored", f"{self._path.name}, line {number}: is not the one of which the audit log tells")
        if lines and lines[-1].audit != NO_ENTRY and len(lines) > number and not self._log.has(lines[-1].audit):
            raise Refused(
                "restored", f"the audit log lacks entry {lines[-1].audit.entries}, which {self._path.name} names"
            )
        self._note(lines[number:])  # a crash came before their entries
        return lines

    def _last_noted(self) -> tuple[int, str]:
        """Of the last line of which the log tells; the log only grows, so that it is searched once."""
        entry, size = self._log.search(SPENT, since=self._searched)
        if size < self._searched:  # another log
            self._noted = None
            entry, size = self._log.search(SPENT)
        if entry is not None:
            self._noted = int(entry["opening"]), str(entry["line"])
        self._searched = size
        return self._noted or (0, "")

    def _spent(self) -> Iterator[dict[str, object]]:
        return (entry for entry in entries(self._folder.audit_log) if entry.get("what") == SPENT)

    def _migrate(self) -> list[Line]:
        """The openings of a folder of an earlier silograph."""
        approvals, found = Approvals(self._folder.path), list[tuple[Opening, str | None]]()
        for answered in Ledger(self._folder.path).answered():
            for study, runs in answered.studies.items():
                approval = approvals.get(study)
                opening = Opening(
                    study=study,
                    name="" if approval is None else approval.name,
                    version=answered.version,
                    cohort=(),
                    masked=False,
                    rho=float("inf"),
                    run=next(iter(runs), ""),
                )
                found.append((opening, answered.first))
        if not found:
            return []
        detail = f"{len(found)} openings of an earlier silograph, by the ledger: open, without noise"
        self._log.append({"what": "migrated", "detail": detail}, durable=True)
        return self._write(found)

    # --- writing ------------------------------------------------------------------------------------------------------

    def _append(self, last: Line | None, opening: Opening) -> None:
        lines, text = make_lines([(opening, None)], before=last, audit=self._log.head() or NO_ENTRY)
        new = not self._path.exists()
        if new:
            write_bytes(self._path, text, durable=True)
        else:
            with self._path.open("r+b") as file:
                file.seek(_end_of_lines(file.read()))
                file.truncate()  # a line that a crash tore was never in force
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        self._note(lines)

    def _write(self, openings: Sequence[tuple[Opening, str | None]]) -> list[Line]:
        """All of the file anew."""
        lines, text = make_lines(openings, before=None, audit=self._log.head() or NO_ENTRY)
        write_bytes(self._path, text, durable=True)
        self._note(lines)
        return lines

    def _note(self, lines: Sequence[Line]) -> None:
        for line in lines:
            entry = {name: value for name, value in entry_of(line).items() if value is not None}
            self._log.append(entry, durable=True)


def _end_of_lines(data: bytes) -> int:
    return data.rfind(b"\n") + 1
