"""What an experiment is given: a lab to run in, how large to be, and where real data lie."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from silograph.experiments.lab import Arrays, Lab
from silograph.experiments.recipe import COARSE, COARSE_IMAGES, IMAGES, Grids, Recipe
from silograph.experiments.scenarios import Scenario
from silograph.experiments.trials import Trial, run_trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How large."""

    seeds: int = 30  # draws of each synthetic scenario
    draws: int = 20  # of four objects of COIL-20
    subjects: int | None = None  # of each ABIDE group; None: all
    subset: int = 50  # of each group, drawn at random
    subsets: int = 6  # such draws
    permutations: int = 100_000
    edge_permutations: int = 5_000  # of all edges at once
    recipe: Recipe = field(default_factory=Recipe)
    image_grids: Grids = IMAGES
    is_quick: bool = False


FULL_SIZE = Scale()
QUICK = Scale(
    seeds=4,
    draws=4,
    subjects=12,
    subset=8,
    subsets=3,
    permutations=2_000,
    edge_permutations=500,
    recipe=Recipe(grids=COARSE),
    image_grids=COARSE_IMAGES,
    is_quick=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One call of `silograph reproduce`."""

    lab: Lab = field(default_factory=Lab)
    scale: Scale = FULL_SIZE
    coil: Path | None = None  # where the data are; None: as SILOGRAPH_DATA says
    abide: Path | None = None

    @property
    def recipe(self) -> Recipe:
        """The settings of the synthetic experiments."""
        return self.scale.recipe

    def trials(self, *scenarios: Scenario, beta: float | None = None) -> list[Sequence[Arrays]]:
        """For each scenario, one result per seed; `beta` instead of the recipe's."""
        seeds, recipe = range(self.scale.seeds), self.recipe if beta is None else replace(self.recipe, beta=beta)
        jobs = [Trial(scenario=scenario, seed=seed, recipe=recipe) for scenario in scenarios for seed in seeds]
        results = self.lab.results(" · ".join(scenario.label for scenario in scenarios), run_trial, jobs)
        return [results[k * len(seeds) : (k + 1) * len(seeds)] for k in range(len(scenarios))]
