"""What noise costs in accuracy: one-shot with masked sums, rows of unit length, pairs ranked by scores.

    python -m benchmarks.privacy [--quick] [--parts acceptance curve people]

Writes benchmarks/results/privacy.json, which has the data of the figure, and privacy.md. The people are ABIDE's of New
York, if `$SILOGRAPH_DATA` has them: there, a whole table may be replaced (unit = "table").
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from benchmarks.machine import facts
from benchmarks.privacy_people import measure_people, people_lines
from benchmarks.privacy_runs import DELTA, draw, privacy_at, run, score_alone, silos_of, with_common_mode
from silograph.data.bounded import RowBounds

RESULTS = Path(__file__).parent / "results"
EPSILONS = (0.25, 0.5, 1, 2, 4, 8, None)
SAMPLES, SITES = (200, 500, 1000, 2000, 5000), (3, 5, 10, 20)
LOST_PERSONAL, LOST_CONSENSUS = 0.005, 0.02  # that the acceptance allows
Rows = list[dict[str, object]]
Tell = Callable[[str], None]


def measure_acceptance(seeds: Iterable[int], tell: Tell) -> Rows:
    """10 sites × 1000 rows, also with a common mode: raw rows, unit rows, and these with noise."""
    rows: Rows = []
    for common in (False, True):
        for seed in seeds:
            drawn = draw(10, 1000, seed)
            signals = with_common_mode(drawn.signals, seed) if common else drawn.signals
            raw, unit = silos_of(signals, None), silos_of(signals, RowBounds())
            cases = {"raw rows": (raw, None), "unit rows": (unit, None), "ε = 1": (unit, 1.0), "ε = 0.5": (unit, 0.5)}
            for case, (silos, epsilon) in cases.items():
                got = run(silos, drawn, privacy_at(epsilon))
                rows.append({"common mode": common, "seed": seed, "case": case, **vars(got)})
            tell(f"acceptance: seed {seed}{', with a common mode' if common else ''}")
    return rows


def measure_curve(seeds: Iterable[int], samples: Iterable[int], tell: Tell) -> Rows:
    """All numbers of rows, sites and ε."""
    rows: Rows = []
    for n_samples in samples:
        for n_sites in SITES:
            for seed in seeds:
                drawn = draw(n_sites, n_samples, seed)
                silos = silos_of(drawn.signals, RowBounds())
                for epsilon in EPSILONS:
                    got = run(silos, drawn, privacy_at(epsilon))
                    place = {"samples": n_samples, "sites": n_sites, "epsilon": epsilon, "seed": seed}
                    rows.append({**place, **vars(got)})
            tell(f"curve: {n_sites} sites × {n_samples} rows")
    return rows


def measure_alone(seeds: Iterable[int], samples: Iterable[int], tell: Tell) -> Rows:
    """What the silos of the curve have without each other: rows as they are, and nothing sent."""
    rows: Rows = []
    for n_samples in samples:
        for n_sites in SITES:
            for seed in seeds:
                drawn = draw(n_sites, n_samples, seed)
                got = score_alone(silos_of(drawn.signals, None), drawn)
                rows.append({"samples": n_samples, "sites": n_sites, "seed": seed, "personal": got})
        tell(f"alone: {n_samples} rows")
    return rows


def mean_of(rows: Rows, what: str, **where: object) -> float:
    """The mean over the rows that are so."""
    return float(np.mean([row[what] for row in rows if all(row[name] == value for name, value in where.items())]))


def lost(rows: Rows, what: str, *, common: bool) -> tuple[float, float]:
    """What noise of ε = 1 takes from unit rows, and its standard error over seeds."""
    both = [
        {row["seed"]: row[what] for row in rows if row["case"] == case and row["common mode"] == common}
        for case in ("unit rows", "ε = 1")
    ]
    off = np.array([both[0][seed] - both[1][seed] for seed in both[0]])
    return float(off.mean()), float(off.std(ddof=1) / np.sqrt(off.size)) if off.size > 1 else float("nan")


def acceptance_lines(rows: Rows) -> list[str]:
    """The table of the acceptance, and whether it is met."""
    n_seeds, cases = len({row["seed"] for row in rows}), list(dict.fromkeys(row["case"] for row in rows))
    lines = ["## 10 sites × 1000 rows", "", f"Average precision, personal / consensus, mean over {n_seeds} seeds.", ""]
    lines += [
        "A common mode is taken out with each row's mean, so that unit rows with and without it are the same.",
        "",
    ]
    lines += ["| | " + " | ".join(cases) + " |", "|---" * (len(cases) + 1) + "|"]
    for common in (False, True):
        cells = [
            " / ".join(
                f"{mean_of(rows, what, case=case, **{'common mode': common}):.4f}" for what in ("personal", "consensus")
            )
            for case in cases
        ]
        lines.append(f"| {'a common mode added' if common else 'as drawn'} | {' | '.join(cells)} |")
    lines.append("")
    for common in (False, True):
        told = []
        for what, allowed in (("personal", LOST_PERSONAL), ("consensus", LOST_CONSENSUS)):
            mean, error = lost(rows, what, common=common)
            told.append(
                f"{what} {mean:+.4f} ± {error:.4f} (allowed {allowed}: {'met' if mean <= allowed else 'NOT MET'})"
            )
        lines.append(
            f"- Lost at ε = 1 ± its standard error{', with a common mode' if common else ''}: {'; '.join(told)}."
        )
    return [*lines, ""]


def largest_error(rows: Rows) -> float:
    """Of the consensus' means over seeds, the largest standard error."""
    cells: dict[tuple, list] = {}
    for row in rows:
        cells.setdefault((row["samples"], row["sites"], row["epsilon"]), []).append(row["consensus"])
    return max(float(np.std(cell, ddof=1) / np.sqrt(len(cell))) for cell in cells.values())


def curve_lines(rows: Rows, alone: Rows) -> list[str]:
    """One table per number of sites."""
    n_seeds, samples = len({row["seed"] for row in rows}), sorted({row["samples"] for row in rows})
    lines = ["## The whole curve", "", f"Average precision, personal / consensus, mean over {n_seeds} seeds, with a "]
    lines[-1] += (
        f"standard error of up to {largest_error(rows):.2f} of the consensus. Alone: each silo learns by itself, "
    )
    lines[-1] += "from rows as they are, and sends nothing; below that, a personal graph gains nothing from the others."
    lines.append("")
    for n_sites in SITES:
        heads = ["alone"]
        heads += ["no noise" if epsilon is None else f"ε = {epsilon:g}" for epsilon in EPSILONS]
        lines += [f"| {n_sites} sites | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
        for n_samples in samples:
            where = {"samples": n_samples, "sites": n_sites}
            cells = [f"{mean_of(alone, 'personal', **where):.3f}"]
            cells += [
                " / ".join(f"{mean_of(rows, what, epsilon=epsilon, **where):.3f}" for what in ("personal", "consensus"))
                for epsilon in EPSILONS
            ]
            lines.append(f"| {n_samples} rows | {' | '.join(cells)} |")
        lines.append("")
    return lines


HEAD = f"""# What noise costs in accuracy

`python -m benchmarks.privacy`. The paper's synthetic silos (20 nodes), one-shot, masked sums, δ = {DELTA:g}, collusion
1, rows of unit length at home too, degree 6 of the noisy sum, each silo's pull chosen by rows that it holds out. Pairs
are ranked by weight, and those without an edge by their reduced cost. "Unit rows" and "no noise" are the same rows
without noise.
"""


def page(data: dict) -> str:
    """The results as a page."""
    lines = [HEAD]
    lines += acceptance_lines(data["acceptance"]) if data.get("acceptance") else []
    lines += curve_lines(data["curve"], data["alone"]) if data.get("curve") else []
    lines += people_lines(data["people"]) if data.get("people") else []
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer seeds, rows and people; writes nothing")
    parser.add_argument("--parts", nargs="+", default=["acceptance", "curve", "people"], help="the rest as saved")
    asked, began = parser.parse_args(), time.perf_counter()

    def tell(what: str) -> None:
        print(f"{time.perf_counter() - began:6.1f} s  {what}", flush=True)

    path = RESULTS / "privacy.json"
    data = json.loads(path.read_text(encoding="utf-8")) if path.exists() and not asked.quick else {}
    if "acceptance" in asked.parts:
        data["acceptance"] = measure_acceptance(range(2 if asked.quick else 20), tell)
    if "curve" in asked.parts:
        seeds, samples = range(2 if asked.quick else 5), SAMPLES[:1] if asked.quick else SAMPLES
        data["curve"] = measure_curve(seeds, samples, tell)
        data["alone"] = measure_alone(seeds, samples, tell)
    if "people" in asked.parts:
        data["people"] = measure_people(tell, quick=asked.quick)
    data["machine"] = facts()
    print(page(data))
    if not asked.quick:
        path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        path.with_suffix(".md").write_text(page(data), encoding="utf-8")


if __name__ == "__main__":
    main()
