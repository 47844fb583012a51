"""Three worked examples and their pages: synthetic silos, photographs of objects, weather stations.

    python examples/gallery.py gallery               # the first; with SILOGRAPH_DATA set, all three

writes, for each, the silos' tables, the run of `silograph learn` and the run's page, gallery/NAME/run/report.html.

synthetic   five silos on twenty nodes, seven tenths of each graph shared: what is shared is known
coil        three views of four objects (COIL-20): each image a node, each view a silo; objects become groups
molene      temperatures at 37 weather stations of Brittany (Molène): each fourth of January 2014 a silo, with a map
"""

import csv
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from silograph.datasets import coil_silos, load_coil20, load_molene, make_silos
from silograph.errors import DataError
from silograph.report import write_report

CITIES = ("oslo", "lima", "kyoto", "accra", "delhi")
OBJECTS = (0, 3, 7, 12)
HOURS = 186  # four silos of 744 hours
ZERO = 273.15  # kelvin


def main(folder: Path) -> None:
    """Make every example whose data are here."""
    for name, example in {"synthetic": synthetic, "coil": coil, "molene": molene}.items():
        try:
            print(f"Look at {example(folder / name)}")
        except DataError as error:
            print(f"Left out: {name}. {error}")


def synthetic(folder: Path) -> Path:
    """Five silos with 20 to 100 samples."""
    drawn = make_silos(n_samples=(20, 40, 60, 80, 100), shared=0.7, seed=7)
    tables = dict(zip(CITIES, drawn.signals.values(), strict=True))
    names = [f"node{node}" for node in range(20)]
    learn(folder, tables, names, "--degree", "6", "--coupling", "0.5", "--sparsity", "0.4")
    return write_report(folder / "run", title="Five synthetic silos")


def coil(folder: Path) -> Path:
    """Three views of four objects, each of twelve poses."""
    silos = coil_silos(load_coil20(), OBJECTS)
    learn(folder, silos.signals, silos.names, "--degree", "3")
    return write_report(folder / "run", title="COIL-20: four objects in three views")


def molene(folder: Path) -> Path:
    """Hourly temperatures by station, in four parts of a month."""
    weather = load_molene()
    names = [f"station {name}" for name in weather.names]
    parts = {f"part{k + 1}": weather.signals[k * HOURS : (k + 1) * HOURS] - ZERO for k in range(4)}
    learn(folder, parts, names, "--degree", "4", "--standardize")
    places = folder / "stations.csv"
    write_table(places, ["name", "x", "y"], [[name, *at] for name, at in zip(names, weather.coordinates, strict=True)])
    title = "Molène: which weather stations move together"
    return write_report(folder / "run", coordinates=places, title=title)


def learn(folder: Path, silos: dict[str, np.ndarray], names: Sequence[str], *options: str) -> None:
    """Write one CSV file per silo, and learn from them as a user would."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for silo, values in silos.items():
        files.append(folder / f"{silo}.csv")
        write_table(files[-1], names, values.tolist())
    command = [sys.executable, "-m", "silograph", "learn", *map(str, files), *options]
    subprocess.run([*command, "--out", str(folder / "run"), "--force", "--quiet"], check=True)


def write_table(path: Path, header: Sequence[str], rows: list[list[object]]) -> None:
    """A CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "gallery"))
