"""The command `silograph site join`: check the data first, then install, then say what leaves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from silograph._util.checks import list_names
from silograph._util.files import write_text
from silograph.cli.site.pin import not_pinned, own_key
from silograph.errors import SilosError
from silograph.federation.folders import SiteFolder
from silograph.federation.invitation import Invitation
from silograph.federation.nvflare.kits import install_kit, site_invitation, site_name
from silograph.federation.refusals import Refused
from silograph.federation.site.data import SiteData
from silograph.federation.site.reading import note_read
from silograph.federation.site.settings import SiteSettings, write_site
from silograph.federation.site.whole import read_whole

LEAVES = """What leaves this site, once you approve a study, and only to the coordinator:
  - in every round: numbers per pair of nodes and a few single numbers, which the coordinator adds to those of others.
    Unless the study masks them, it sees each site's numbers before it adds them, and can work out this site's mean
    squared differences between nodes from the first of them: treat these means as data that leave. From two runs
    whose tables differ by one sample it can work out that sample, but for its sign and mean.
    With masked sums it sees the sum over all sites alone, once; with noise, no sample shows in it."""
SUMS_LEAVE = """What leaves this site, once you approve a study, and only to the coordinator:
  - in every round: the sum over your tables of numbers per pair of nodes and of a few single numbers, and how many
    tables they are. Whoever knows all tables but one can work out that one's part. From two runs whose tables differ
    by one it can be worked out, too. With masked sums the coordinator sees the sum over all sites alone, once; with
    noise, neither a sample nor, if the study says so, a table shows in it."""
TABLES_STAY = """What does not leave: the tables, their graphs and contributions, names of patients and files, the
limits in site.toml, the reasons of errors."""
STAYS = """What does not leave: the table, its path, the limits in site.toml, the reasons of errors."""


def join_federation(home: Path, signed: Path, data: Sequence[Path], limits: dict[str, Any]) -> list[str]:
    """Join, and return the lines to print. Nothing is installed unless the data are as the federation expects them."""
    invitation, places = site_invitation(home), tuple(_path_from(home, place) for place in data)
    settings = SiteSettings(
        name=site_name(home),
        federation=invitation.name,
        server=invitation.server,
        data=places[0] if len(places) == 1 else places,
        **limits,
    )
    found, summary = _check_data(home, settings, invitation)
    folder = SiteFolder(home)
    if folder.settings.exists():
        raise SilosError(f"{folder.settings}: this site has joined already. Edit it, or move it away to join anew.")
    install_kit(home, signed, invitation)
    if invitation.nodes is not None:
        write_text(folder.nodes, "\n".join(invitation.nodes) + "\n")
    write_site(home, settings)
    note_read(folder, found.version)
    return [
        summary,
        f"Joined {invitation.name} as {settings.name}. Your limits are in {folder.settings}; edit them at any time.",
        *(_leaves_together(settings) if found.several else _leaves(settings)),
        *own_key(home),
        *not_pinned(home),
        "Next: silograph site start",
    ]


def _leaves(settings: SiteSettings) -> list[str]:
    return [
        LEAVES,
        f"  - your number of samples and edges, and your contribution: {'yes' if settings.report else 'no'}",
        f"  - your own graph, at the end, if the study asks for it: {'yes' if settings.share_graph else 'no'}",
        STAYS,
    ]


def _leaves_together(settings: SiteSettings) -> list[str]:
    told = "yes" if settings.report else "no"
    return [
        SUMS_LEAVE,
        f"  - the number of samples of all tables together, and their mean squared difference: {told}",
        TABLES_STAY,
    ]


def _path_from(home: Path, data: Path) -> Path:
    """Relative where the table lies in the site's own folder, so that the folder can be moved."""
    absolute, root = data.absolute(), home.absolute()
    return absolute.relative_to(root) if absolute.is_relative_to(root) else absolute


def _check_data(home: Path, settings: SiteSettings, invitation: Invitation) -> tuple[SiteData, str]:
    """Read all tables once: their nodes, their numbers, their size."""
    try:
        whole = read_whole(settings, home, invitation.nodes)
    except Refused as error:
        raise SilosError(error.detail) from error
    data, least = whole.data, settings.least_samples(len(whole.data.names))
    if whole.n_samples < least:
        why = "as many as nodes, and 20" if settings.min_samples is None else "--min-samples"
        raise SilosError(
            f"{data.place}: has {whole.n_samples} samples, fewer than this site's own minimum of {least} ({why}). "
            "Give more samples; or, if what is sent may tell them, a smaller --min-samples."
        )
    if data.several and len(data.tables) < settings.min_tables:
        raise SilosError(
            f"{settings.data_shown}: has {data.place}, fewer than this site's own minimum of {settings.min_tables} "
            "(--min-tables). Give more tables; or, if what is sent may tell them, a smaller --min-tables."
        )
    nodes = "just the federation's nodes" if invitation.nodes is not None else "the federation has named none yet"
    if whole.lacking:
        nodes = f'some lack {list_names(whole.lacking)}: only studies with missing_nodes = "allow" can be answered'
    if whole.n_gaps:
        cells = "1 cell is" if whole.n_gaps == 1 else f"{whole.n_gaps} cells are"
        nodes += f"; {cells} empty: only studies that say what to do about gaps (missing) can be answered"
    return data, f"{whole.summary} ({nodes})."
