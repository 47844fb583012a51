"""Stand-ins for published data, and a lab that all tests of experiments share, so that no job is run twice."""

import pytest

from silograph.experiments.catalogue import EXPERIMENTS
from silograph.experiments.files import write_outcome
from silograph.experiments.lab import Lab
from silograph.experiments.session import Session
from testing.small_experiments import KNOWN_REGIONS, SCALE, UNKNOWN_REGIONS, write_abide, write_coil


@pytest.fixture(scope="session")
def coil(tmp_path_factory):
    return write_coil(tmp_path_factory.mktemp("coil") / "coil20.npz")


@pytest.fixture(scope="session")
def abide(tmp_path_factory):
    return write_abide(tmp_path_factory.mktemp("abide") / "abide.npz", KNOWN_REGIONS)


@pytest.fixture(scope="session")
def foreign_abide(tmp_path_factory):
    """Of an atlas whose regions' places are not known."""
    return write_abide(tmp_path_factory.mktemp("foreign") / "abide.npz", UNKNOWN_REGIONS)


@pytest.fixture(scope="session")
def session(tmp_path_factory, coil, abide):
    return Session(lab=Lab(kept=tmp_path_factory.mktemp("cells")), scale=SCALE, coil=coil, abide=abide)


@pytest.fixture(scope="session")
def outcomes(session):
    """All experiments, run once."""
    return {experiment.name: experiment.run(session) for experiment in EXPERIMENTS}


@pytest.fixture(scope="session")
def folder(outcomes, tmp_path_factory):
    """Their files."""
    place = tmp_path_factory.mktemp("out")
    for outcome in outcomes.values():
        write_outcome(outcome, place)
    return place
