"""Figure: silos with 20, 40, 60, 80 and 100 samples; who gains from learning together?"""

import numpy as np

from silograph.experiments.comparison import DRAWN_ROWS
from silograph.experiments.outcome import Number, Outcome, Picture, Table
from silograph.experiments.scenarios import UNEQUAL
from silograph.experiments.selection import choose
from silograph.experiments.session import Session
from silograph.experiments.trials import MEASURES
from silograph.report.drawing import draw_bars, panels, styled

TITLE = "Unequal data sizes, silo by silo"
SHOWN = ("FS", "RE")


def run(session: Session) -> Outcome:
    """Each method's scores of each silo's graph, at the point that is best on average over silos."""
    (trials,) = session.trials(UNEQUAL)
    silos = [f"C{k}\nN = {n}" for k, n in enumerate(UNEQUAL.n_samples, start=1)]
    numbers, scores = [], {}
    for row in DRAWN_ROWS:
        index = choose(row, UNEQUAL, trials, session.recipe).index
        scores[row.label] = np.stack([arrays[f"{row.method}/scores"][index, : len(silos)] for arrays in trials])
    with styled():
        figure, axes = panels(1, 2, width=9, height=3)
        for ax, measure in zip(axes, SHOWN, strict=True):
            column = MEASURES.index(measure)
            bars = {label: of_row[:, :, column].mean(axis=0) for label, of_row in scores.items()}
            errors = {label: standard_error(of_row[:, :, column]) for label, of_row in scores.items()}
            draw_bars(ax, silos, bars, errors)
            ax.set_ylabel(measure)
            ax.set_ylim(bottom=0.3)
            for label, values in bars.items():
                numbers += [
                    Number(
                        block=measure, row=label, column=f"C{k + 1}", ours=float(value), error=float(errors[label][k])
                    )
                    for k, value in enumerate(values)
                ]
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(DRAWN_ROWS))
    data = Table(name="figure-sizes", title=TITLE, numbers=tuple(numbers))
    caption = (
        "F-score and relative error (bars start at 0.3) of each silo's own graph when silo k has 20k samples (q = "
        f"0.5). Means over {session.scale.seeds} seeds; whiskers are standard errors."
    )
    return Outcome(pictures=(Picture(name="figure-sizes", title=TITLE, caption=caption, figure=figure, data=data),))


def standard_error(values: np.ndarray) -> np.ndarray:
    """Over the first axis; zero for a single value."""
    n = values.shape[0]
    out: np.ndarray = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(values.shape[1:])
    return out
