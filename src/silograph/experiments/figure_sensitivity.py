"""Figure: the F-score over the whole grid of ν and λ, for local graphs and for the consensus graph."""

import numpy as np

from silograph.experiments.outcome import Number, Outcome, Picture, Table
from silograph.experiments.scenarios import SIZES
from silograph.experiments.selection import CONSENSUS, Row, scores_of
from silograph.experiments.session import Session
from silograph.experiments.trials import FS
from silograph.report.drawing import LOOKS, panels, styled

TITLE = "Sensitivity to ν and λ (N = 100, q = 0.5)"
ROWS = (
    Row(label="Local graphs", method="ppgl"),
    Row(label="Consensus graph", method="ppgl", graphs=CONSENSUS),
    Row(label="Local graphs, exact", method="exact"),
    Row(label="Consensus graph, exact", method="exact", graphs=CONSENSUS),
)


def run(session: Session) -> Outcome:
    """Mean F-scores at every point of Table I's grid."""
    scenario, grids = SIZES[-1], session.recipe.grids
    (trials,) = session.trials(scenario)
    numbers: list[Number] = []
    with styled():
        figure, axes = panels(2, 2, width=8, height=5, sharex=True, sharey=True)
        for ax, row in zip(axes, ROWS, strict=True):
            means = (
                scores_of(row, len(scenario.n_samples), trials)[:, :, FS]
                .mean(axis=0)
                .reshape(len(grids.nus), len(grids.lams))
            )
            image = ax.imshow(means.T, origin="lower", cmap="cividis", vmin=0, vmax=0.85, aspect="auto")
            best = np.unravel_index(np.argmax(means), means.shape)
            ax.plot(*best, "*", color=LOOKS[1]["color"], markersize=11, markeredgecolor="white")
            ax.set_title(f"{row.label}: best {means.max():.3f}")
            ax.set_xticks(range(len(grids.nus)), [f"{nu:g}" for nu in grids.nus])
            ax.set_yticks(range(len(grids.lams)), [f"{lam:g}" for lam in grids.lams])
            ax.spines[:].set_visible(False)
            numbers += [
                Number(block=row.label, row=f"λ = {lam:g}", column=f"ν = {nu:g}", ours=float(means[k, j]))
                for j, lam in enumerate(grids.lams)
                for k, nu in enumerate(grids.nus)
            ]
        for ax in axes[2:]:
            ax.set_xlabel("ν")
        for ax in axes[::2]:
            ax.set_ylabel("λ")
        figure.colorbar(image, ax=axes, label="FS", shrink=0.8)
    caption = f"Mean F-score over {session.scale.seeds} seeds at every point of the grid; the star is the best."
    data = Table(name="figure-sensitivity", title=TITLE, numbers=tuple(numbers))
    return Outcome(
        pictures=(Picture(name="figure-sensitivity", title=TITLE, caption=caption, figure=figure, data=data),)
    )
