"""The file budget.jsonl: what a site has opened of its data, one line each, none of them to be altered unseen.

A line is a JSON object. `previous` is the SHA-256 of the line before, and 64 zeros in the first; `audit` is the last
entry of the audit log at that moment. The log gets an entry about each line, with the line's SHA-256: so the two hold
each other (budget.py).
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal

from silograph._util.documents import parse_json
from silograph.errors import ParameterError
from silograph.federation.witness import Witness, parse_witness
from silograph.privacy.accounting import epsilon_of

FORMAT = 1
NO_LINE = "0" * 64
NO_ENTRY = Witness(0, "0" * 64)
UNKNOWN = "unknown"  # which sites took part
KINDS = {**dict.fromkeys(("study", "name", "run", "draw", "version", "unit"), str), "masked": bool, "most": int}


Key = tuple[str, str, tuple[str, ...], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A sum that left the site, or all that an open study tells of it, and what it costs those whose data are in it."""

    study: str  # SHA-256
    version: str  # of the data, as the ledger calls it
    cohort: tuple[str, ...]  # the sites, in the order of the run; none: nobody knows any more
    masked: bool
    rho: float  # for one unit; infinite without noise
    delta: float | None = None  # at which the study states its ε
    unit: Literal["row", "table"] = "row"
    most: int = 1  # units that one person has at most
    name: str = ""  # of the study
    run: str = ""  # the first one, with its generation
    draw: str = ""  # which draw of its noise, where that has a name: noise that was lost and drawn anew costs anew

    @property
    def key(self) -> Key:
        """What makes it one opening: the same sum is told once, however often it is sent."""
        return self.study, self.version, self.cohort, self.draw

    @property
    def noisy(self) -> bool:
        """Whether it carries noise."""
        return self.rho < math.inf

    @property
    def epsilon(self) -> float:
        """For one unit, at the study's own δ."""
        return math.inf if self.delta is None else epsilon_of(self.rho, self.delta)

    @property
    def person_rho(self) -> float:
        """For one person: who has m units changes the sum by m times as much, and that costs m² times as much."""
        return self.rho * self.most**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An opening with its place in the file."""

    number: int
    time: str  # UTC
    opening: Opening
    audit: Witness  # the last entry of the log when it was written
    previous: str
    digest: str  # of this line's bytes


def make_lines(
    openings: Iterable[tuple[Opening, str | None]], *, before: Line | None, audit: Witness
) -> tuple[list[Line], bytes]:
    """The lines that follow, and their bytes; a time that is None is now."""
    lines, text = list[Line](), b""
    for opening, time in openings:
        number, previous = (before.number + 1, before.digest) if before else (1, NO_LINE)
        time = time or datetime.now(UTC).isoformat(timespec="microseconds")
        about = {"format": FORMAT, "number": number, "previous": previous, "time": time, **plain_opening(opening)}
        data = json.dumps(about | {"audit": audit.plain}, separators=(",", ":")).encode()
        before = Line(
            number=number, time=time, opening=opening, audit=audit, previous=previous, digest=sha256(data).hexdigest()
        )
        lines, text = [*lines, before], text + data + b"\n"
    return lines, text


def plain_opening(opening: Opening) -> dict[str, Any]:
    """As JSON holds it, which has no infinite numbers."""
    return {
        "study": opening.study,
        "name": opening.name,
        "run": opening.run,
        "draw": opening.draw,
        "version": opening.version,
        "cohort": list(opening.cohort) or UNKNOWN,
        "masked": opening.masked,
        "unit": opening.unit,
        "most": opening.most,
        "rho": opening.rho if opening.noisy else "inf",
        "delta": opening.delta,
    }


def read_lines(data: bytes) -> tuple[list[Line], str | None]:
    """The lines up to the first that does not follow from those before, and what is wrong with it.

    What comes after the last line's end was torn by a crash, before it was in force.
    """
    lines = list[Line]()
    for number, text in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            line = _parse(text)
        except ParameterError:  # of a later format: no damage
            raise
        except ValueError as error:
            return lines, f"line {number}: is no opening ({error})"
        if line.number != number or line.previous != (lines[-1].digest if lines else NO_LINE):
            return lines, f"line {number}: does not follow from the line before"
        lines.append(line)
    return lines, None


def salvage(data: bytes) -> list[tuple[Opening, str]]:
    """All openings with their times that can be read at all, whether or not they follow from each other."""
    found = []
    for text in data.split(b"\n"):
        try:
            line = _parse(text)
        except ValueError:
            continue
        found.append((line.opening, line.time))
    return found


def distinct(openings: Iterable[Opening]) -> list[Opening]:
    """One opening for each key, the one that costs most; the order is that of the first."""
    found: dict[Key, Opening] = {}
    for opening in openings:
        known = found.get(opening.key)
        if known is None or opening.person_rho > known.person_rho:
            found[opening.key] = opening
    return list(found.values())


def entry_of(line: Line) -> dict[str, str | int | float | bool | None]:
    """What the audit log says of a line: enough to make the opening again, should the file be lost."""
    opening = line.opening
    about = {"study": opening.study, "run": opening.run, "table": opening.version, "name": opening.name}
    about |= {"draw": opening.draw}
    about |= {"cohort": json.dumps(list(opening.cohort)), "unit": opening.unit}
    costs = {"masked": opening.masked, "most": opening.most, "rho": opening.rho, "delta": opening.delta}
    return {"what": "spent", "opening": line.number, "line": line.digest, **about, **costs}


def opening_in(entry: Mapping[str, Any]) -> Opening | None:
    """The opening that an entry of the log tells of. Of very many sites, the log holds the first alone: not known."""
    try:
        cohort = json.loads(str(entry.get("cohort")))
    except ValueError:
        cohort = []
    try:
        return _opening({**entry, "version": entry.get("table"), "cohort": cohort or UNKNOWN})
    except ValueError:
        return None


def _parse(text: bytes) -> Line:
    about = parse_json(text)
    if (known := about.get("format")) != FORMAT:
        if isinstance(known, int) and known > FORMAT:
            raise ParameterError(f"budget.jsonl: has format {known}, of a later silograph. Upgrade this one.")
        raise ValueError("not of this format")
    number, previous, time = about.get("number"), about.get("previous"), about.get("time")
    if type(number) is not int or not isinstance(previous, str) or not isinstance(time, str):
        raise ValueError("no number, time or line before")
    audit = NO_ENTRY if about.get("audit") == NO_ENTRY.plain else parse_witness(about.get("audit"))
    opening, digest = _opening(about), sha256(text).hexdigest()
    return Line(number=number, time=time, opening=opening, audit=audit, previous=previous, digest=digest)


def _opening(about: Mapping[str, Any]) -> Opening:
    given: dict[str, Any] = {name: about.get(name) for name in KINDS}
    if not all(type(given[name]) is kind for name, kind in KINDS.items()) or given["unit"] not in ("row", "table"):
        raise ValueError("an entry is missing")
    cohort, rho, delta = about.get("cohort"), about.get("rho"), about.get("delta")
    sites: Sequence[Any] = () if cohort == UNKNOWN else cohort if isinstance(cohort, list) else (None,)
    if not all(isinstance(site, str) for site in sites) or given["most"] < 1:
        raise ValueError("no cohort")
    if rho != "inf" and not (isinstance(rho, float) and 0 <= rho < math.inf):
        raise ValueError("no cost")
    if delta is not None and not (isinstance(delta, float) and 0 < delta < 1):
        raise ValueError("no delta")
    return Opening(**given, cohort=tuple(sites), rho=float(rho), delta=delta)
