"""Figure: Algorithm 1's distance to the optimum by round, for several K."""

from collections.abc import Sequence

import numpy as np

from silograph.experiments.comparison import format_point
from silograph.experiments.convergence import LOCAL_STEPS, ROUNDS, Descent, follow_descent
from silograph.experiments.lab import Arrays
from silograph.experiments.outcome import Number, Outcome, Picture, Table, mean_and_error
from silograph.experiments.recipe import Point
from silograph.experiments.scenarios import SIZES
from silograph.experiments.selection import Row, choose
from silograph.experiments.session import Session
from silograph.report.drawing import LOOKS, panels, styled

TITLE = "Convergence of Algorithm 1 (N = 100, q = 0.5)"
MOST_SEEDS = 10


def descents(session: Session) -> tuple[Point, Sequence[Arrays]]:
    """The point that Table I chose for local graphs, and descents from several draws there."""
    scenario = SIZES[-1]
    (trials,) = session.trials(scenario)
    point = choose(Row(label="PPGL-L", method="ppgl"), scenario, trials, session.recipe).point
    jobs = [
        Descent(scenario=scenario, seed=seed, nu=point["nu"], lam=point["lam"], recipe=session.recipe)
        for seed in range(min(session.scale.seeds, MOST_SEEDS))
    ]
    return point, session.lab.results("convergence", follow_descent, jobs)


def run(session: Session) -> Outcome:
    """Distances to the exact optimum, which the exact method gives."""
    point, results = descents(session)
    numbers: list[Number] = []
    with styled():
        figure, axes = panels(1, 2, width=7.5, height=3, sharey=True)
        for ax, which, title in zip(axes, ("local", "consensus"), ("Local graphs", "Consensus graph"), strict=True):
            apart = np.stack([arrays[which] for arrays in results])  # (seeds, K, rounds)
            for k, local_steps in enumerate(LOCAL_STEPS):
                ax.loglog(ROUNDS, apart[:, k].mean(axis=0), label=f"K = {local_steps}", markersize=4, **LOOKS[k])
                for j, rounds in enumerate(ROUNDS):
                    mean, error = mean_and_error(apart[:, k, j])
                    numbers.append(
                        Number(block=title, row=f"K = {local_steps}", column=f"{rounds}", ours=mean, error=error)
                    )
            ax.axvline(session.recipe.rounds, color="#bbbbbb", linewidth=0.8, zorder=0)
            ax.set_title(title)
            ax.set_xlabel("round")
        axes[0].set_ylabel("‖w − w*‖ / ‖w*‖")
        axes[0].legend()
    caption = (
        f"Relative distance to the exact optimum after so many rounds at {format_point(point)}; means over "
        f"{len(results)} seeds. The grey line is the paper's T = {session.recipe.rounds}."
    )
    data = Table(name="figure-convergence", title=TITLE, numbers=tuple(numbers), digits=4)
    return Outcome(
        pictures=(Picture(name="figure-convergence", title=TITLE, caption=caption, figure=figure, data=data),)
    )
