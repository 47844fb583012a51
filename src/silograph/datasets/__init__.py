"""Data to learn from: synthetic silos with known graphs, and published data sets read from where you keep them.

    from silograph.datasets import make_silos
    silos = make_silos(seed=0)
    silos.signals, silos.graphs, silos.consensus

Nothing is downloaded: a loader finds its files by the path it is given, or in the folder `$SILOGRAPH_DATA`.
"""

from silograph.datasets.abide import Abide, abide_from_nilearn, load_abide
from silograph.datasets.coil import Coil20, CoilSilos, coil_silos, load_coil20
from silograph.datasets.molene import Molene, load_molene
from silograph.datasets.synthetic import SyntheticSilos, make_silos

__all__ = [
    "Abide",
    "Coil20",
    "CoilSilos",
    "Molene",
    "SyntheticSilos",
    "abide_from_nilearn",
    "coil_silos",
    "load_abide",
    "load_coil20",
    "load_molene",
    "make_silos",
]
