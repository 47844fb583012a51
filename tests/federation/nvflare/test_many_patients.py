"""A federation that really runs, whose sites hold many patients each."""

import json

import pytest

pytest.importorskip("nvflare")

from silograph import learn_files, read_run
from testing.real_federation import RealFederation, study_text

pytestmark = [pytest.mark.federation, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

PATIENTS = {"kyoto": 5, "lima": 6, "oslo": 7}
EXACT = 'method = "exact"\nrounds = 6\nalpha = 0.5\nbeta = 0.25'


def test_sites_with_many_patients_end_in_the_bits_of_one_place_and_no_name_leaves(tmp_path):
    with RealFederation(tmp_path / "fed", patients=PATIENTS) as fed:
        fed.run(study_text(EXACT), tmp_path / "run")
        tables = [path for site in fed.sites for path in sorted(fed.table(site).glob("*.csv"))]
        here = learn_files(tables[::-1], method="exact", rounds=6, alpha=0.5, beta=0.25)
        there = read_run(tmp_path / "run")
        assert there.consensus_graph.weights.tobytes() == here.consensus_graph.weights.tobytes()
        assert there.result.objective == here.result.objective
        assert there.result.relative_gap == here.result.relative_gap
        assert [silo.n_silos for silo in there.silos] == list(PATIENTS.values())
        for site in fed.sites:
            (folder,) = (fed.home(site) / "results").iterdir()
            home = read_run(folder)
            assert len(home.graphs) == PATIENTS[site]
            for name, graph in home.graphs.items():
                assert graph.weights.tobytes() == here.graphs[name].weights.tobytes()
            fed.command("report", folder)
        for path in [*fed.fed.rglob("*"), *(tmp_path / "run").rglob("*")]:
            assert "private" not in path.name
            assert not path.is_file() or b"private-" not in path.read_bytes(), path
        assert json.loads((tmp_path / "run" / "run.json").read_text())["federation"]["attempts"] == 1
