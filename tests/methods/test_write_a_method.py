"""The method of the how-to page, as it stands there: in one process, between sites, on the command line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from silograph import ConsensusGraph, read_run
from silograph.engine.inprocess import InProcess
from silograph.engine.study import learn_on, learn_silos
from silograph.errors import ParameterError, ProtocolError
from silograph.federation.refusals import REASONS
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem
from silograph.local.solvers.polish import solve_to_rounding
from silograph.methods.common import registry
from silograph.methods.common.registry import MethodSpec, Solver, built_in, register, spec_of
from silograph.methods.common.settings import StudySettings
from silograph.protocol.silo import Silo
from testing.conformance import assert_conforms
from testing.consortium import Consortium, Loopback, write_table
from testing.problems import costs

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-method.md"
DEFINITION, USE = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture
def weighted(monkeypatch) -> dict:
    """The page's text, run; the method is forgotten afterwards."""
    monkeypatch.setattr(registry, "_registered", {})
    space: dict = {"__name__": "weighted_page"}
    monkeypatch.setitem(sys.modules, "weighted_page", type(sys)("weighted_page"))  # where dataclasses look for types
    exec(DEFINITION, space)
    sys.modules["weighted_page"].__dict__.update(space)
    exec(USE, space)
    return space


def silos(rng: np.random.Generator) -> list[Silo]:
    pairs = Pairs.all(7)
    return [Silo(name=f"s{n}", pairs=pairs, cost=costs("smooth", rng, n, 7), n_samples=n) for n in (20, 40, 90)]


def test_the_method_learns_the_graph_of_the_weighted_costs(weighted, rng):
    some = silos(rng)
    learned = learn_silos(some, StudySettings(method="weighted", degree=3, options={"power": 0.5}))
    weights = np.sqrt([silo.n_samples for silo in some])
    cost = np.average([silo.cost for silo in some], axis=0, weights=weights)
    problem = LocalProblem(cost=cost, pairs=some[0].pairs, quadratic=4 * learned.beta, alpha=learned.alpha)
    np.testing.assert_allclose(learned.consensus, solve_to_rounding(problem, None).w, rtol=1e-12, atol=1e-15)
    assert all((w == learned.consensus).all() for w in learned.graphs.values())


def test_the_estimator_takes_it_with_its_option(weighted, rng):
    tables = {f"s{n}": rng.normal(size=(n, 6)) for n in (30, 60)}
    model = weighted["model"].fit(tables)
    assert (model.method, model.options) == ("weighted", {"power": 0.5})
    other = ConsensusGraph(degree=3, method="weighted", options={"power": 0.0}, whole=True).fit(tables)
    pooled = ConsensusGraph(alpha=other.alpha_, beta=other.beta_, method="pooled").fit(tables)
    np.testing.assert_allclose(other.consensus_, pooled.consensus_, rtol=1e-9)
    assert not np.array_equal(model.consensus_, other.consensus_)


def test_between_sites_it_gives_the_bits_of_one_process(weighted, tmp_path):
    consortium = Consortium(tmp_path, methods=("weighted",))
    run = consortium.run('method = "weighted"\ndegree = 3\noptions = { power = 0.5 }')
    assert_conforms(run, consortium.tables, consortium.finish(run))


def test_a_site_answers_it_only_if_its_own_file_says_so(weighted, tmp_path):
    consortium = Consortium(tmp_path, methods=("exact",))
    outcome = consortium.run_attempt(consortium.run('method = "weighted"\ndegree = 3'), Loopback(consortium.services()))
    assert (outcome.ended, {one["reason"] for one in outcome.troubles}) == ("trouble", {REASONS["method"]})


def test_a_run_that_is_cut_after_each_round_ends_in_the_same_bits(weighted, rng, tmp_path):
    class CutError(Exception):
        """As when the process is killed."""

    some, settings = silos(rng), StudySettings(method="weighted", alpha=1.0, beta=0.5)
    whole = learn_silos(some, settings)
    cuts = set()

    def cut(stage, record):
        if (stage, record["round"]) not in cuts:
            cuts.add((stage, record["round"]))
            raise CutError

    while True:
        try:
            parts = learn_on(InProcess(some), settings, run_id="a", checkpoint=tmp_path, on_round=cut)
            break
        except CutError:
            continue
    assert len(cuts) == 3  # one round of set-up, two of learning
    assert parts.consensus.tobytes() == whole.consensus.tobytes()


def test_what_it_does_not_have_is_refused(weighted):
    with pytest.raises(ParameterError, match=r"coupling: the method 'weighted', solved exactly, has no such parameter"):
        StudySettings(method="weighted", coupling=0.5)
    with pytest.raises(ParameterError, match=r"powr: the method 'weighted' has no such option. It has power"):
        StudySettings(method="weighted", options={"powr": 1.0})
    with pytest.raises(ParameterError, match=r"power: expected a value like 1.0, got 'high'"):
        StudySettings(method="weighted", options={"power": "high"})
    with pytest.raises(ParameterError, match=r"power: the method 'exact' has no such option. It has none"):
        StudySettings(options={"power": 1.0})
    with pytest.raises(ParameterError, match=r"power: expected a value like 1.0, got nan"):
        StudySettings(method="weighted", options={"power": float("nan")})
    with pytest.raises(ParameterError, match="options: expected values by name, got 5"):
        StudySettings(method="weighted", options=5)
    with pytest.raises(ParameterError, match="gradient"):
        StudySettings(method="weighted", solver="gradient")


def test_settings_with_options_are_plain_and_can_be_hashed(weighted):
    settings = StudySettings(method="weighted", options={"power": np.float64(0.5)})
    assert (type(settings.options["power"]), hash(settings)) == (float, hash(StudySettings(method="weighted")))
    assert StudySettings(method="weighted").parameters["options"] == {"power": 1.0}


def test_an_answer_that_was_not_declared_does_not_leave_the_silo(weighted, rng, monkeypatch):
    answer = weighted["Answer"]
    monkeypatch.setattr(
        weighted["Weighted"], "local", lambda self, silo, state, task: answer(parts={"signals": silo.cost})
    )
    with pytest.raises(ProtocolError, match=r"expected \['cost', 'weight'\], got \['signals'\]"):
        learn_silos(silos(rng), StudySettings(method="weighted", alpha=1.0, beta=0.5))


def test_a_package_of_its_own_brings_it_to_the_command_line(tmp_path):
    package = tmp_path / "packages"
    about = package / "weighted_package-1.0.dist-info"
    about.mkdir(parents=True)
    (package / "weighted_package.py").write_text(DEFINITION, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: weighted-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[silograph.methods]\nweighted = weighted_package:METHOD\n")
    for seed, site in enumerate(("oslo", "lima")):
        write_table(tmp_path / f"{site}.csv", seed)
    command = [sys.executable, "-m", "silograph", "learn", "oslo.csv", "lima.csv", "--method", "weighted"]
    ran = subprocess.run(
        [*command, "--degree", "3", "--option", "power=0.5", "--out", "run", "--report"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    run = read_run(tmp_path / "run")
    assert run.record.parameters["method"] == "weighted"
    assert run.record.parameters["options"] == {"power": 0.5}
    assert "power" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


# --- the registry ----------------------------------------------------------------------------------------------------


def test_every_method_of_the_package_describes_itself():
    for name in built_in():
        spec = spec_of(name)
        assert isinstance(spec, MethodSpec)
        assert StudySettings(method=name).solver_used is (spec.newton or spec.gradient)
        if spec.newton and spec.gradient:
            assert StudySettings(method=name, solver="gradient").solver_used is spec.gradient


def test_a_method_of_the_package_cannot_be_replaced():
    with pytest.raises(ParameterError, match="'exact' is one of silograph's own"):
        register("exact", MethodSpec(build=lambda settings, parameters: None, newton=Solver()))


def test_a_spec_that_would_do_nothing_is_refused():
    with pytest.raises(ParameterError, match="all, none or sparsity alone, got coupling"):
        Solver(settings=frozenset({"coupling"}))
    with pytest.raises(ParameterError, match=r"expected settings among .*, got copling"):
        Solver(settings=frozenset({"copling"}))
    with pytest.raises(ParameterError, match="got neither"):
        MethodSpec(build=lambda settings, model: None)


def test_a_name_that_is_nearly_right_is_told():
    with pytest.raises(ParameterError, match=r"expected one of exact, .*, got 'fedawg'\. Did you mean 'fedavg'\?"):
        StudySettings(method="fedawg")
