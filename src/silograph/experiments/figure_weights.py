"""Figure: the contribution weights γ of the silos, with unequal data sizes (1) and unequal heterogeneity (2)."""

import numpy as np

from silograph.experiments.comparison import format_point
from silograph.experiments.outcome import Number, Outcome, Picture, Table, mean_and_error
from silograph.experiments.printed import WEIGHTS
from silograph.experiments.scenarios import NESTED, UNEQUAL
from silograph.experiments.selection import CONSENSUS, Row, choose
from silograph.experiments.session import Session
from silograph.report.drawing import LOOKS, panels, styled

TITLE = "Contribution weights of the silos"
ROW = Row(label="PPGL-C", method="ppgl", graphs=CONSENSUS)


def run(session: Session) -> Outcome:
    """γ after the last round at the point that is best for the consensus graph."""
    scenarios = (UNEQUAL, NESTED)
    numbers: list[Number] = []
    with styled():
        figure, axes = panels(1, 2, width=7.5, height=2.8, sharey=True)
        for ax, scenario, trials in zip(axes, scenarios, session.trials(*scenarios), strict=True):
            chosen = choose(ROW, scenario, trials, session.recipe)
            gamma = np.stack([arrays["ppgl/gamma"][chosen.index] for arrays in trials])  # (seeds, silos)
            relative = gamma / gamma.mean(axis=1, keepdims=True)  # free of the scale of the graphs
            means, errors = zip(*(mean_and_error(values) for values in relative.T), strict=True)
            printed = np.array(WEIGHTS[scenario.label]) / np.mean(WEIGHTS[scenario.label])
            places = np.arange(len(means))
            shown = [0.0 if error is None else error for error in errors]
            ax.bar(places, means, 0.6, yerr=shown, color=LOOKS[3]["color"], edgecolor="white", label="ours")
            ax.plot(places, printed, "D", color="#222222", markersize=4, label="paper")
            unequal = scenario is UNEQUAL
            values = scenario.n_samples if unequal else scenario.shared
            assert isinstance(values, tuple)
            ax.set_xticks(places, [f"C{k}\n{'N' if unequal else 'q'} = {v:g}" for k, v in enumerate(values, start=1)])
            ax.set_title(f"{scenario.label}: {format_point(chosen.point)}")
            numbers += [
                Number(block=scenario.label, row="γ / mean γ", column=f"C{k + 1}", ours=mean, error=error, paper=paper)
                for k, (mean, error, paper) in enumerate(zip(means, errors, printed.tolist(), strict=True))
            ]
        axes[0].set_ylabel("γ / mean γ")
        axes[0].legend(loc="upper left")
    caption = (
        "γ = 1/(‖w_i − w_con‖ + ε) after the last round, relative to its mean over silos, at the parameters that are "
        f"best for the consensus graph. Means over {session.scale.seeds} seeds; whiskers are standard errors; "
        "diamonds are from a table in the paper's source, relative to its mean."
    )
    data = Table(name="figure-weights", title=TITLE, numbers=tuple(numbers))
    return Outcome(pictures=(Picture(name="figure-weights", title=TITLE, caption=caption, figure=figure, data=data),))
