"""A study file to begin with: what is protected from the start, and every other choice explained beside it."""

import json
from collections.abc import Mapping, Sequence

from silograph.federation.study_file import parse_study
from silograph.privacy.settings import LEAST_MASKED_SITES

TEMPLATE = """\
# What this study learns, from whom. Every site gets this file as it is here and approves it by its SHA-256
# (sha256sum study.toml): after any change, a space even, the sites are asked anew.

name = {name}
nodes = {nodes}  # beside this file: one name per line, or a .csv or .tsv table whose first row names them
{sites}  # {sites_told}
standardize = true  # every site scales each node to unit variance first: units differ between sites, unnoticed
# transform = "ranks"  # every site takes each node's ranks first: ordinal items, heavy tails, outliers
# scale = [0.1, 10]  # with standardize = false: sites refuse whose mean squared difference is not between these
{share_graphs}
# missing_nodes = "allow"  # where some tables lack nodes: absent, constant or empty columns
# missing = "pairs"  # where cells are empty: each pair from the rows that have both; "rows": leave rows with gaps out
# groups = ["patient", "control"]  # with open sums, where sites have many patients: compared at the end, by sums
# forbid = [["a", "b"]]  # pairs of nodes that cannot be edges; or allow = […]: the only ones that can

[learn]
{learn}

{privacy}
# epsilon = 1.0  # noise, with delta: how little a row, or a table, can change what is told; smaller protects more
# delta = 1e-5  # how likely that may fail; below one in the number of people
# unit = "row"  # what the noise hides: a row; or "table": a whole table, where each is one person
# rows = "unit"  # with epsilon, rows are made of length 1; or a number: longer ones are cut to it, and amplitudes count
# collusion = 1  # sites that may tell the coordinator their share of the noise; each site knows its own
# min_samples = 1000  # with unit = "row": rows that each table has at least, as all may know; more need less noise
# centres = [0.0, 0.0]  # with epsilon and standardize: known beforehand, one per node, subtracted first
# scales = [1.0, 1.0]  # and the numbers to divide by; without both, epsilon needs standardize = false

[policy]
timeout = 600  # seconds that a site may be silent before on_missing applies
{policy}
"""
CHOICES = {  # what stands in the template: with open sums, and with masked ones
    "sites_told": ("leave it out for all sites of the federation", "just these: with masks nobody can be left out"),
    "share_graphs": (
        "share_graphs = true  # each site's own graph comes to the coordinator, unless the site forbids it",
        "share_graphs = false  # each site's own graph stays there, as masks hide no graph",
    ),
    "learn": (
        'method = "exact"\ndegree = 5  # edges per node to aim at\n'
        "coupling = 0.5  # how much the sites' graphs are drawn together; 0: each site for itself",
        'method = "oneshot"  # one sum over all sites, then each site learns its own graph at home\n'
        "degree = 5  # edges per node to aim at\nreport = false  # no site tells numbers of its own",
    ),
    "privacy": (
        '# [privacy]\n# sums = "masked"  # the coordinator sees the sum only; needs three sites, "oneshot" and [keys]',
        '[privacy]\nsums = "masked"  # the coordinator sees the sum only; "open": each site\'s part, too',
    ),
    "policy": (
        'on_missing = "wait"  # wait: until it is back; continue: without it; stop: end the run\n'
        "# quorum = 2  # least number of sites that a result may rest on; by default all, or 2 to continue",
        'on_missing = "wait"  # wait: until it is back; stop: end the run',
    ),
}
KEYS = """
[keys]  # SHA-256 of each site's public key: every site checks that it has pinned the others' (silograph site pin)
"""


def template(name: str, sites: Sequence[str], nodes_file: str, keys: Mapping[str, str] | None = None) -> str:
    """A study file to begin with, every choice explained; without sites, all of the federation take part.

    From three sites on whose keys are given: one masked sum. Otherwise the exact method, whose sums are open.
    """
    masked = len(keys or {}) >= LEAST_MASKED_SITES
    listed = json.dumps(list(sites), ensure_ascii=False)
    parts = {key: masked_text if masked else open_text for key, (open_text, masked_text) in CHOICES.items()}
    text = TEMPLATE.format(
        name=json.dumps(name, ensure_ascii=False),
        nodes=json.dumps(nodes_file, ensure_ascii=False),
        sites=f"sites = {listed}" if sites else '# sites = ["oslo", "lima"]',
        **parts,
    )
    if masked and keys:
        text += KEYS + "".join(f"{site} = {json.dumps(keys[site])}\n" for site in sites)
    parse_study(text.encode("utf-8", "surrogatepass"), source="study.toml")
    return text
