"""The published data themselves, where they are kept: set SILOGRAPH_DATA to run these."""

import os
from collections import Counter

import numpy as np
import pytest

from silograph.datasets import coil_silos, load_abide, load_coil20, load_molene

pytestmark = pytest.mark.skipif(
    not os.environ.get("SILOGRAPH_DATA"), reason="SILOGRAPH_DATA is not set: the published data are not here"
)


def test_coil20_turns_slowly():
    images = load_coil20().images
    assert images.shape == (20, 72, 1024)
    assert images.min() == 0
    assert images.max() == 1
    step = np.linalg.norm(images - np.roll(images, 1, axis=1), axis=2).mean()
    jump = np.linalg.norm(images - np.roll(images, 18, axis=1), axis=2).mean()
    assert step < 0.6 * jump


def test_coil20_gives_the_silos_of_the_paper():
    silos = coil_silos(load_coil20(), [0, 5, 11, 19])
    assert [values.shape for values in silos.signals.values()] == [(1024, 48)] * 3


def test_abide_has_the_subjects_and_regions_it_is_known_for():
    found = load_abide()
    assert Counter(found.groups.values()) == {"autism": 74, "control": 98}
    assert {values.shape for values in found.series.values()} == {(176, 109)}
    assert list(found.dropped) == ["3455", "3701"]  # columns 82 and 87
    assert found.skipped == {}
    assert all((values.std(axis=0) > 0).all() for values in found.series.values())


def test_molene_is_brittany_in_january():
    found = load_molene()
    assert found.signals.shape == (744, 37)
    assert found.coordinates.shape == (37, 2)
    assert 275 < found.signals.mean() < 290
    lowest, highest = load_molene(variable="lowest").signals, load_molene(variable="highest").signals
    assert (lowest <= found.signals).all()
    assert (found.signals <= highest).all()
