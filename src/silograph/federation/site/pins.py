"""The keys that this site believes: a fingerprint for each site, which people of this site compared by a second way.

The coordinator holds the root key. It could certify a second "oslo" of its own making, give the others a study with
that one's key, and take off what they mask with Oslo. So a site believes a key only if its own people pinned it.

    pins.json    {"format": 1, "pins": {SITE: {"key": fingerprint, "by": account, "when": UTC}}}

The site's own key counts as pinned. Everything is read anew each time, so that a change holds at once.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from silograph._util.documents import parse_json
from silograph._util.files import write_bytes
from silograph._util.locks import locked
from silograph.errors import ParameterError
from silograph.federation.fingerprints import FINGERPRINT, parse_fingerprint, shown_fingerprint
from silograph.federation.folders import SiteFolder
from silograph.federation.identity import public_key_fingerprint, request_fingerprint
from silograph.federation.invitation import read_invitation
from silograph.federation.names import SITE_NAME, check_site_name
from silograph.federation.site.audit import AuditLog
from silograph.federation.study_file import StudyFile

FORMAT = 1
LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A key that people of this site believe to be that of another site."""

    key: str  # SHA-256 of the public key, 64 hexadecimal digits
    by: str
    when: str  # UTC


class Pins:
    """The pins in a site's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = SiteFolder(folder)

    def get(self, site: str) -> str | None:
        """The fingerprint that is believed of a site."""
        return self.all().get(site)

    def all(self) -> dict[str, str]:
        """All fingerprints that are believed, this site's own among them."""
        return {site: pin.key for site, pin in self.pinned().items()} | self.own()

    def own(self) -> dict[str, str]:
        """The site's own name and the fingerprint of its own key, as soon as it has one."""
        try:
            name = str(parse_json(self._folder.key_request.read_bytes())["name"])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError) as error:
            raise ParameterError(
                f"{self._folder.key_request}: is damaged, so that this site's own key is not known. Put it back."
            ) from error
        kit = self._folder.kit.certificate  # what this site signs with
        if kit.exists():
            return {name: public_key_fingerprint(kit.read_bytes())}
        request = self._folder.signing_request(name)
        return {name: request_fingerprint(request.read_bytes())} if request.exists() else {}

    def pinned(self) -> dict[str, Pin]:
        """The pins that people made, oldest first."""
        try:
            found = parse_json(self._folder.pins.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ParameterError(
                f"{self._folder.pins}: cannot be read ({error.strerror}). Give the right to read it."
            ) from error
        except ValueError:
            found = {}
        if found.get("format") != FORMAT or not _are_pins(found.get("pins")):
            raise ParameterError(
                f"{self._folder.pins}: is damaged, or of another version of silograph. Move it away and pin the sites' "
                "keys anew, comparing each by telephone; the audit log has what was pinned."
            )
        return {site: Pin(**values) for site, values in found["pins"].items()}

    def set(self, site: str, fingerprint: str, *, by: str, replace: bool = False) -> None:
        """Believe this key of a site from now on; another one than before only with `replace`."""
        check_site_name(site)
        key = parse_fingerprint(fingerprint)
        with locked(self._folder.pins_lock):
            before = self.all()
            if before.get(site) == key:
                return
            self._check_new(site, key, before, replace=replace)
            self._log("pinned", site, before.get(site), key, by=by)
            pin = {"key": key, "by": by[:LONGEST_TEXT], "when": datetime.now(UTC).isoformat(timespec="seconds")}
            self._write(self._plain() | {site: pin})

    def remove(self, site: str, *, by: str) -> None:
        """Believe no key of a site any more."""
        with locked(self._folder.pins_lock):
            pins = self._plain()
            if site not in pins:
                raise ParameterError(f"No key of the site {site[:80]!r} is pinned here: there is nothing to remove.")
            self._log("unpinned", site, pins.pop(site)["key"], None, by=by)
            self._write(pins)

    def _check_new(self, site: str, key: str, before: dict[str, str], *, replace: bool) -> None:
        if site in self.own():
            raise ParameterError(
                f"{site} is this site itself, whose key has the fingerprint {shown_fingerprint(before[site])}. "
                "Pin the other sites."
            )
        if site in before and not replace:
            raise ParameterError(
                f"Another key of the site {site!r} is pinned: {shown_fingerprint(before[site])}. If its people tell "
                "you, by a second way, that they made a new key, pin it with --replace. If not, somebody poses as them."
            )
        same = [other for other, known in before.items() if known == key]
        if same:
            raise ParameterError(
                f"This is the key of {same[0]!r}, and each site has its own: who holds both would know what one masks "
                "for the other. Ask both sites for theirs."
            )

    def _log(self, what: str, site: str, before: str | None, after: str | None, *, by: str) -> None:
        """First: no key is believed of which the log does not say who pinned it."""
        detail = f"the key of {site}: {before or 'none'} → {after or 'none'}"
        AuditLog(self._folder.audit_log).append({"what": what, "by": by, "detail": detail}, durable=True)

    def _plain(self) -> dict[str, dict[str, str]]:
        return {site: {"key": pin.key, "by": pin.by, "when": pin.when} for site, pin in self.pinned().items()}

    def _write(self, pins: dict[str, dict[str, str]]) -> None:
        data = json.dumps({"format": FORMAT, "pins": pins}, indent=1).encode()
        write_bytes(self._folder.pins, data, durable=True, under_lock=True)


def unpinned(folder: Path) -> list[str]:
    """The sites of the federation whose keys nobody has pinned here."""
    believed = Pins(folder).all()
    return [site for site in read_invitation(SiteFolder(folder).invitation).sites if site not in believed]


def strangers(folder: Path, sites: Iterable[str]) -> list[str]:
    """Those sites that this one's people were not invited with, and whose key they did not pin since."""
    later = set(sites) - set(read_invitation(SiteFolder(folder).invitation).sites)
    return sorted(later - set(Pins(folder).all())) if later else []


def describe_newcomers(folder: Path, study: StudyFile) -> list[str]:
    """Of a study that is to be approved: whom it brings that this site's people know nothing of."""
    new = strangers(folder, study.sites or ())
    return [
        f"{', '.join(new)} joined later than this site, and is not pinned here. To approve this study is to take part "
        "with it: ask its own people who they are."
    ] * bool(new)


def describe_pins(folder: Path, study: StudyFile) -> list[str]:
    """Which of a study's keys are pinned here, in lines for people who are to approve it; none if it names no keys."""
    if not study.keys:
        return []
    pins = Pins(folder)
    believed, own, width = pins.all(), pins.own(), max(map(len, study.keys))
    invited = read_invitation(SiteFolder(folder).invitation).sites
    lines = []
    for site, key in study.keys.items():
        verdict = _verdict(site, key, believed, own) + " --new" * (site not in believed and site not in invited)
        lines.append(f"  {site:<{width}}  {verdict}")
    return ["Keys of the study's sites:", *lines]


def _verdict(site: str, key: str, believed: dict[str, str], own: dict[str, str]) -> str:
    if believed.get(site) == key:
        return "this site's own" if site in own else "pinned"
    shown = shown_fingerprint(key)
    if site in own:
        return f"NOT THIS SITE'S KEY: the study says {shown}. Ask the coordinator who has that key."
    if site in believed:
        return f"ANOTHER KEY IS PINNED; the study says {shown}. Ask {site} by telephone which is right."
    return f"NOT pinned. Ask {site} by telephone for its key; if it is this one: silograph site pin {site} {shown}"


def _are_pins(value: Any) -> bool:
    return isinstance(value, dict) and all(SITE_NAME.fullmatch(site) and _is_pin(pin) for site, pin in value.items())


def _is_pin(value: Any) -> bool:
    shaped = isinstance(value, dict) and set(value) == {"key", "by", "when"}
    return shaped and all(isinstance(one, str) for one in value.values()) and bool(FINGERPRINT.fullmatch(value["key"]))
