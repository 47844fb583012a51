import subprocess
import sys
from pathlib import Path

import silograph


def test_the_public_names_are_these_and_all_of_them_exist():
    assert silograph.__all__ == [
        "CheckpointError",
        "ConsensusGraph",
        "DataError",
        "DegreeWarning",
        "DoubtfulSilosWarning",
        "Graph",
        "GraphError",
        "LocalProblem",
        "MissingExtraError",
        "Moments",
        "NodesWarning",
        "OutputError",
        "Pairs",
        "PairsError",
        "ParameterError",
        "PartialCorrelationGraph",
        "ProtocolError",
        "Scores",
        "SignalError",
        "Signals",
        "SilographError",
        "SilosError",
        "SmoothGraph",
        "Solution",
        "compare_groups",
        "learn_files",
        "open_signals",
        "read_graph",
        "read_run",
        "score",
        "write_graph",
    ]
    for name in silograph.__all__:
        assert getattr(silograph, name).__doc__


def loaded_by(statement: str, *modules: str) -> list[str]:
    program = f"import sys; {statement}; print(*[name for name in {modules!r} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


def test_importing_silograph_imports_nothing_heavy():
    assert loaded_by("import silograph", "numpy", "scipy", "numba", "sklearn", "pandas", "typer") == []


class Hidden:
    """An import hook that makes packages look as if they were not installed."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name: str, path=None, target=None) -> None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(name)


def hiding(*names: str) -> str:
    """A statement that hides the packages from the statements after it."""
    here = f"sys.path.insert(0, {str(Path(__file__).parent)!r})"
    return f"{here}; from test_public_api import Hidden; sys.meta_path.insert(0, Hidden(*{names!r}))"


def test_the_core_works_without_any_extra():
    hide = hiding("pandas", "polars", "networkx", "pyarrow", "typer", "rich")
    learn = "import numpy; from silograph import SmoothGraph; SmoothGraph().fit(numpy.eye(9)).graph_.adjacency()"
    assert loaded_by(f"{hide}; {learn}", "silograph.estimators") == ["silograph.estimators"]


def test_the_command_line_works_without_what_a_federation_needs():
    hide = hiding("nvflare", "cryptography", "grpc", "psutil", "yaml")
    assert loaded_by(f"{hide}; import silograph.cli.app, silograph.runs.learn", "silograph.cli.app")


def test_a_missing_extra_is_named_with_the_command_that_installs_it():
    hide = hiding("networkx")
    ask = "from silograph import Graph; Graph.from_edges(['a', 'b'], [0], [1], [1.0]).to_networkx()"
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; {hide}; {ask}"], capture_output=True, text=True, check=False
    )
    assert "pip install 'silograph[networkx]'" in result.stderr


def test_the_command_line_does_not_wait_for_scikit_learn():
    assert loaded_by("import silograph.cli.app, silograph.runs.learn", "sklearn", "pandas", "networkx") == []


def test_every_error_is_a_silograph_error_and_bad_input_a_value_error():
    for name in silograph.__all__:
        if name.endswith("Error"):
            assert issubclass(getattr(silograph, name), silograph.SilographError)
    for error in (silograph.SignalError, silograph.ParameterError, silograph.PairsError, silograph.GraphError):
        assert issubclass(error, ValueError)
