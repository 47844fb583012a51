"""What privacy costs in time: the same study open, masked, and masked with noise, between three real sites.

    python -m benchmarks.federation.modes [--repeats 5]

Seconds from the command to the results, 100 nodes, tables of 1000 rows, one-shot. Each run is a study of its own name,
so that keys, masks and noise are all made anew. The open and the masked results must be those of one process.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.federation.overhead import write_table
from benchmarks.machine import facts
from testing.real_federation import RealFederation, study_text

N_NODES, N_ROWS = 100, 1000
LEARN = 'method = "oneshot"\ndegree = 5'
NOISE = f"epsilon = 1\ndelta = 1e-5\nmin_samples = {N_ROWS}"


def texts(federation: RealFederation, number: int) -> dict[str, str]:
    """The study of each mode."""
    sites = json.dumps(federation.sites)
    return {
        "open": study_text(LEARN, name=f"open {number}", sites=sites, share_graphs="false"),
        "masked": federation.masked_text(LEARN, name=f"masked {number}"),
        "masked with noise": federation.masked_text(LEARN, privacy=NOISE, name=f"noise {number}"),
    }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="modes-") as place:
        nodes = [f"n{k}" for k in range(N_NODES)]
        make = write_table(N_NODES, N_ROWS)
        limit = {"join": ("--approve-all",), "make_table": make, "nodes": nodes}
        with RealFederation(Path(place), **limit) as federation:
            for number in range(repeats + 1):  # the first compiles
                for mode, text in texts(federation, number).items():
                    out = Path(place) / f"out-{mode}-{number}"
                    began = time.monotonic()
                    federation.run(text, out)
                    took = time.monotonic() - began
                    if "noise" not in mode:
                        federation.assert_conforms(out, text)
                    if number:
                        seconds.setdefault(mode, []).append(took)
    print(facts()["cpu"], f"load {facts()['load']:.1f}")
    for mode, each in seconds.items():
        print(f"{mode}: median {median(each):.1f} s, {min(each):.1f} to {max(each):.1f} s, {len(each)} runs")


if __name__ == "__main__":
    main()
