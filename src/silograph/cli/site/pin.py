"""What `silograph site pin` does: show the keys of the federation's sites, and pin those that people compared."""

import json
from pathlib import Path

from silograph.cli.site.account import say, user
from silograph.errors import ParameterError
from silograph.federation.fingerprints import parse_fingerprint, shown_fingerprint
from silograph.federation.folders import SiteFolder
from silograph.federation.invitation import read_invitation
from silograph.federation.site.contact import shown_minute
from silograph.federation.site.pins import Pins, unpinned

TELL = "Tell it to the people of every other site by a second way, such as the telephone: they pin it."


def own_key(home: Path) -> list[str]:
    """The fingerprint of this site's key, and what to do with it, in lines to print."""
    own = Pins(home).own()
    return [f"The key of this site, {site}:\n  {shown_fingerprint(key)}\n{TELL}" for site, key in own.items()]


def not_pinned(home: Path) -> list[str]:
    """Which sites' keys are not pinned yet, in lines to print."""
    if not (sites := unpinned(home)):
        return ["The keys of all other sites are pinned."]
    return [
        f"Not pinned yet: {', '.join(sites)}. Ask each for the fingerprint of its key, then: silograph site pin SITE "
        "FINGERPRINT. Until then this site refuses masked studies with them."
    ]


def show_pins(home: Path, *, as_json: bool) -> None:
    """Print this site's own key, and what is pinned of each site of the federation."""
    pins, sites = Pins(home), read_invitation(SiteFolder(home).invitation).sites
    own, pinned = pins.own(), pins.pinned()
    if as_json:
        named = dict.fromkeys((*sites, *pinned))
        keys = {site: own.get(site) or (pinned[site].key if site in pinned else None) for site in named}
        say(json.dumps({"site": next(iter(own), None), "keys": keys}, indent=2))
        return
    say(*own_key(home), "")
    for site in sites:
        if site in own:
            continue
        if site in pinned:
            pin = pinned[site]
            say(f"{site}: pinned by {pin.by!r} at {shown_minute(pin.when)}", f"  {shown_fingerprint(pin.key)}")
        else:
            say(f"{site}: NOT pinned")
    for site in sorted(pinned.keys() - set(sites)):
        say(f"{site}: joined later; pinned by {pinned[site].by!r} at {shown_minute(pinned[site].when)}")
        say(f"  {shown_fingerprint(pinned[site].key)}")
    say("", *not_pinned(home))


def pin_site(home: Path, site: str, fingerprint: str, *, replace: bool, new: bool) -> None:
    """Believe a key of a site from now on; of one that joined later than this one only if it is said to be `new`."""
    sites = read_invitation(SiteFolder(home).invitation).sites
    if site not in sites and not new and Pins(home).get(site) is None:
        raise ParameterError(
            f"This site was not invited together with {site[:80]!r}, but with {', '.join(sites)}. If it joined later, "
            "and you know from its own people who they are, add --new: then this site takes part with it."
        )
    Pins(home).set(site, fingerprint, by=user(), replace=replace)
    say(f"Pinned {site}:", f"  {shown_fingerprint(parse_fingerprint(fingerprint))}", *not_pinned(home))


def unpin_site(home: Path, site: str) -> None:
    """Believe no key of a site any more."""
    Pins(home).remove(site, by=user())
    say(f"No key of {site} is pinned any more: this site refuses masked studies with it.")
