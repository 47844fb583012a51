"""The command `silograph federation study`: a study of the federation's sites, with their keys, to edit and to run."""

from collections.abc import Sequence
from pathlib import Path

from silograph._util.files import write_text
from silograph._util.naming import another_place
from silograph.cli.federation.asking import desk
from silograph.errors import OutputError, ParameterError, SilosError
from silograph.federation.fingerprints import shown_fingerprint
from silograph.federation.folders import FederationFolder
from silograph.federation.nvflare.authority import read_federation, site_keys
from silograph.federation.study_template import template
from silograph.privacy.settings import LEAST_MASKED_SITES


def write_study(
    folder: Path, *, sites: Sequence[str], name: str | None, out: Path | None, open_sums: bool, force: bool
) -> list[str]:
    """Write the study, and return the lines to print."""
    federation, invitation = FederationFolder(folder), read_federation(folder)
    chosen, path = tuple(sites) or invitation.sites, out or federation.study
    _check_sites(chosen, invitation.sites)
    _check_place(path, federation.nodes.name, force=force)
    masked = len(chosen) >= LEAST_MASKED_SITES and not open_sums
    keys = _keys_of(folder, chosen) if masked else None
    write_text(path, template(name or invitation.name, chosen, federation.nodes.name, keys))
    return [*_about(path, chosen, keys), f"Edit {path}, then: silograph federation run {path} --out run/"]


def _check_sites(chosen: Sequence[str], known: Sequence[str]) -> None:
    strangers = [site for site in chosen if site not in known]
    if strangers:
        raise ParameterError(
            f"--sites: {', '.join(strangers)} are not of this federation, whose sites are {', '.join(known)}."
        )
    if len(chosen) < 2:
        raise ParameterError(f"--sites: expected at least two sites, got {len(chosen)}. One site needs no federation.")


def _check_place(path: Path, nodes: str, *, force: bool) -> None:
    if path.exists() and not force:
        raise OutputError(f"{path}: exists already. {another_place()}")
    if not (path.parent / nodes).exists():
        raise OutputError(
            f"{path}: a study lies beside the list of its nodes, and {path.parent / nodes} is not there. Copy it there."
        )


def _keys_of(folder: Path, sites: Sequence[str]) -> dict[str, str]:
    if FederationFolder(folder).certificates.exists():
        keys = site_keys(folder)
    else:  # the lead's own machine
        with desk(folder) as session:
            keys = {site["site"]: site["key"] for site in session.ask("status")["sites"] if site["key"]}
    waiting = [site for site in sites if site not in keys]
    if waiting:
        raise SilosError(
            f"{', '.join(waiting)}: not approved yet, so that their keys are not known, which a study with masked sums "
            f"names. Approve each request: silograph federation approve {waiting[0]}.request.zip; or leave them out "
            "(--sites); or let sums be open to the coordinator (--open)."
        )
    return {site: keys[site] for site in sites}


def _about(path: Path, sites: Sequence[str], keys: dict[str, str] | None) -> list[str]:
    if keys is None:
        why = "of two, each would know the other's part" if len(sites) < LEAST_MASKED_SITES else "as you asked"
        return [f"Wrote {path}: the exact method with {', '.join(sites)}. Sums are open to the coordinator ({why})."]
    return [
        f"Wrote {path}: one masked sum over {', '.join(sites)}. The coordinator sees the sum, not each site's part.",
        "Every site must have pinned the others' keys (silograph site pin), which they ask each other by telephone:",
        *(f"  {site:<{max(map(len, keys))}}  {shown_fingerprint(key)}" for site, key in keys.items()),
    ]
