"""A federation that really runs, whose sites hold many patients each."""

import csv
import json

import numpy as np
import pytest
from scipy.stats import ttest_ind

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
        here = learn_files(tables[::-1], method="exact", rounds=6, alpha=0.5, beta=0.25, coupling=0.5)
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


def test_two_groups_are_compared_over_real_sites_and_no_label_leaves(tmp_path):
    patients, home_graphs = {"kyoto": 6, "lima": 6, "oslo": 8}, {"alpha": [], "beta": []}
    with RealFederation(tmp_path / "fed", patients=patients, join=("--approve-all", "--min-tables", "3")) as fed:
        for site in fed.sites:
            names = sorted(path.stem for path in fed.table(site).glob("*.csv"))
            rows = [f"{name},{'alpha' if number % 2 else 'beta'}" for number, name in enumerate(names)]
            (fed.home(site) / "people.csv").write_text("\n".join(["silo,dx", *rows]) + "\n")
            settings = fed.home(site) / "site.toml"
            settings.write_text(settings.read_text().replace("[table]", '[table]\ngroups = "people.csv"', 1))
            fed.stop_site(site)
            fed.start_site(site)
        fed.wait_connected()
        fed.run(study_text(EXACT, groups='["alpha", "beta"]'), tmp_path / "run")
        for site in fed.sites:
            (folder,) = (fed.home(site) / "results").iterdir()
            for number, (_, graph) in enumerate(sorted(read_run(folder).graphs.items())):
                home_graphs["alpha" if number % 2 else "beta"].append(graph.adjacency())
        told = json.loads((tmp_path / "run" / "compare" / "compare.json").read_text())
        assert told["counts"] == [10, 10]
        with (tmp_path / "run" / "compare" / "edges.csv").open() as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            place = fed.nodes.index(row["source"]), fed.nodes.index(row["target"])
            first, second = ([graph[place] for graph in home_graphs[name]] for name in ("alpha", "beta"))
            assert float(row["mean_first"]) == pytest.approx(np.mean(first), abs=1e-12)
            if row["p"]:
                expected = ttest_ind(first, second, equal_var=False)
                assert float(row["statistic"]) == pytest.approx(expected.statistic, rel=1e-6)
                assert float(row["p"]) == pytest.approx(expected.pvalue, rel=1e-6)
        assert any(row["p"] for row in rows)
        for path in [*fed.fed.rglob("*"), *(tmp_path / "run").rglob("*")]:
            assert not path.is_file() or b"private-" not in path.read_bytes(), path
