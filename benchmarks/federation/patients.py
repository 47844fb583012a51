"""What many patients at one site cost, between three provisioned sites on this machine.

    python -m benchmarks.federation.patients [--tables 20 50 100 200] [--nodes 100] [--out FILE]

One site has so many tables, the others five each. Graphs at the sites and the consensus must have the bits that
`silograph learn` gives for all tables in one place.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.federation.overhead import RESULTS, Memory, computed, write_table
from silograph import learn_files
from testing.real_federation import SITES, RealFederation, study_text

FEW, N_SAMPLES = 5, 150
METHODS = {"exact": {"coupling": 0.5}, "oneshot": {}}  # one process would choose the coupling


def same_bits(federation: RealFederation, out: Path, run: str, method: str) -> int:
    """How many graphs have the bits of learning in one place; raises at one that has not."""
    here = federation.folder / f"here-{method}"
    tables, settings = [federation.table(site) for site in federation.sites], METHODS[method]
    learn_files(tables, out=here, method=method, degree=5, whole=True, **settings)
    found = {here / "consensus": out / "consensus"}
    for site in federation.sites:
        silos = federation.home(site) / "results" / f"{run}.1" / "silos"
        found |= {here / "silos" / site / one.name: one for one in silos.iterdir()}
    for mine, theirs in found.items():
        if (mine / "graph.npz").read_bytes() != (theirs / "graph.npz").read_bytes():
            raise SystemExit(f"{theirs}: is not the graph of learning in one place")
    return len(found)


def measure(n_tables: int, n_nodes: int, folder: Path) -> list[str]:
    """A row of the table per method."""
    nodes = [f"n{k}" for k in range(n_nodes)]
    patients = dict.fromkeys(SITES, FEW) | {SITES[0]: n_tables}
    table, rows = write_table(n_nodes, N_SAMPLES), []
    with RealFederation(folder, make_table=table, nodes=nodes, patients=patients) as federation:
        for method in METHODS:
            out, text = folder / f"run-{method}", study_text(f'method = "{method}"\ndegree = 5\n')
            with Memory(federation) as memory:
                began = time.monotonic()
                record = federation.run(text, str(out))
                took = time.monotonic() - began
            run, rounds = record["federation"]["run"], record["result"]["rounds"]
            busy = np.median(list(computed(federation.home(SITES[0]), run).values()))
            sent = (record["federation"]["bytes_down"] + record["federation"]["bytes_up"]) / 1e6
            n_same = same_bits(federation, out, run, method)
            rows.append(
                f"| {n_tables} | {method} | {rounds} | {took:.1f} s | {1e3 * busy:.0f} ms | {memory.site:.0f} MB | "
                f"{memory.server:.0f} MB | {sent:.1f} MB | {n_same} of {n_same} |"
            )
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, nargs="+", default=[20, 50, 100, 200])
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS / "federation_patients.md")
    options = parser.parse_args()
    names = ("tables", "method", "rounds", "command to result", "computing per round", "memory of that site's job")
    names = (*names, "of the server's job", "sent in all", "graphs with the same bits")
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    print("\n".join(lines))
    for n_tables in options.tables:
        with tempfile.TemporaryDirectory() as folder:
            lines += measure(n_tables, options.nodes, Path(folder))
    size = f"{N_SAMPLES} samples, {options.nodes} nodes"
    about = f"One site with so many tables ({size}), two with {FEW} each, on one machine."
    options.out.write_text("\n".join(["# Many patients at one site", "", about, "", *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
