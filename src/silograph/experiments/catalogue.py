"""Every table and figure by name, in the order in which they are run."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from silograph.errors import ParameterError
from silograph.experiments.outcome import Outcome
from silograph.experiments.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    shows: str
    data: str = "synthetic"
    of_the_paper: bool = True  # whether `all` runs it

    @property
    def run(self) -> Callable[[Session], Outcome]:
        """The function that makes it; imported when asked for, as drawing takes a second to load."""
        module = import_module(f"silograph.experiments.{self.name.replace('-', '_')}")
        found: Callable[[Session], Outcome] = module.run
        return found


EXPERIMENTS = (
    Experiment(name="table1", shows="Table I: every method on 20, 50 and 100 samples per silo"),
    Experiment(name="table2", shows="Table II: every method on silos that share 30, 60 and 90 % of their edges"),
    Experiment(name="table3", shows="Table III: with and without adaptive weights"),
    Experiment(name="table-beta", shows="Tables I and II with β as the paper says: IGL's best"),
    Experiment(name="table-sums", shows="The consensus from one, two and three sums, also with unrelated silos"),
    Experiment(name="table4", shows="Table IV: communities in graphs of images", data="COIL-20"),
    Experiment(
        name="table5", shows="Table V: graphs of autistic and other brains, with a permutation test", data="ABIDE"
    ),
    Experiment(name="figure-sizes", shows="Silos with 20 to 100 samples: who gains?"),
    Experiment(name="figure-graphs", shows="One silo's graph by every method, shared edges red, others blue"),
    Experiment(name="figure-weights", shows="Contribution weights of the silos"),
    Experiment(name="figure-sensitivity", shows="F-score over the grid of ν and λ"),
    Experiment(name="figure-convergence", shows="Distance to the optimum by round, for several K"),
    Experiment(name="figure-communities", shows="Communities in graphs of images", data="COIL-20"),
    Experiment(name="figure-brain", shows="Brain graphs of both groups in three views", data="ABIDE"),
    Experiment(
        name="accuracy",
        shows="How good the default is on families with known truth, beside other people's methods",
        of_the_paper=False,
    ),
    Experiment(name="findings", shows="Which of the paper's claims hold, with paired tests", data="all that is found"),
)
ALL = "all"


def choose_experiments(names: tuple[str, ...]) -> tuple[Experiment, ...]:
    """The experiments of these names, in our order; `all` is all of them."""
    known = {experiment.name for experiment in EXPERIMENTS}
    for name in names:
        if name not in known | {ALL}:
            raise ParameterError(f"{name}: no such table or figure. Choose from: {', '.join(sorted(known))}, {ALL}.")
    every = ALL in names
    return tuple(one for one in EXPERIMENTS if (every and one.of_the_paper) or one.name in names)
