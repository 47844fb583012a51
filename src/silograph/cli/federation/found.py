"""The command `silograph federation new`: make a folder with everything to start, and say what to send to whom."""

from collections.abc import Sequence
from pathlib import Path

from silograph._util.files import write_text
from silograph.errors import ParameterError
from silograph.federation.folders import FederationFolder
from silograph.federation.names import check_site_name, read_nodes
from silograph.federation.nvflare.authority import new_kits

NO_NODES = "# Names of the nodes, one per line, in the order of the results. Every site's table must have just these.\n"


def found_federation(
    folder: Path, *, name: str, server: str, port: int, sites: Sequence[str], nodes: Path | None
) -> list[str]:
    """Found the federation, and return the lines to print."""
    if len(sites) < 2:
        raise ParameterError(f"--sites: expected at least two sites, got {len(sites)}. One site needs no federation.")
    for site in sites:
        check_site_name(site)
    names = None if nodes is None else read_nodes(nodes)
    invitation = new_kits(folder, name=name, server=server, port=port, sites=sites, nodes=names)
    made = FederationFolder(folder)
    write_text(made.nodes, NO_NODES if names is None else "\n".join(names) + "\n")
    missing = [] if names is not None else [f"Write the names of your nodes into {made.nodes} before you run a study."]
    return [
        f"Founded {name} in {folder}/.",
        f"Sites must reach {server}, port {port} (TCP, out from the sites; nothing has to reach a site).",
        "Send to every site, by any way:",
        f"  {made.invitation(name)}",
        "Tell them by a second way (telephone) the fingerprint of the root certificate:",
        f"  {invitation.shown_fingerprint()}",
        f"There: silograph site request {made.invitation(name).name} --site {'|'.join(sites)}",
        "Here, for each request that comes back: silograph federation approve SITE.request.zip",
        "There again, when all have joined: they tell each other their keys, not through you, and silograph site pin",
        "Here, then: silograph federation start; silograph federation study;",
        f"      edit {made.study}; silograph federation run {made.study} --out run/",
        f"Studies are run from here, or from any machine that has {made.lead.path.name}/ and {made.about.name}.",
        f"Keep {made.authority}/ secret and away from the server: nothing but approving and renewing needs it.",
        *missing,
    ]
