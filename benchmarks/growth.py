"""What every suite tells of its part `growth`: a table of times by size, and the exponents of the power laws in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.fits import Curve, curve, spread
from benchmarks.report import Table, durations, exponent
from benchmarks.suite import Record

WORDS = {
    "costs": "signals to costs",
    "solve": "one solve to 1e-8",
    "fit": "SmoothGraph.fit, whole",
    "setup": "set-up",
    "rounds": "all rounds",
    "per_round": "one round",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The points of a suite, along which axes, and from which size on laws are fitted."""

    records: Sequence[Record]
    axes: Mapping[str, str]  # the field of a point that grows, and its name for people
    stages: Sequence[str]
    fitted_from: Mapping[str, float]

    def along(self, axis: str) -> list[Record]:
        """The points of one axis, smallest first."""
        here = [one for one in self.records if one["case"]["axis"] == axis]
        return sorted(here, key=lambda one: one["case"][axis])

    def seconds(self, axis: str, stage: str) -> Curve:
        """The times of a stage."""
        return self._curve(axis, [one["seconds"][stage] for one in self.along(axis)])

    def rounds(self, axis: str) -> Curve:
        """The number of rounds."""
        return self._curve(axis, [one["n_rounds"] for one in self.along(axis)])

    def _curve(self, axis: str, values: Sequence[Sequence[float]]) -> Curve:
        sizes = [one["case"][axis] for one in self.along(axis)]
        return curve(list(zip(sizes, values, strict=True)), self.fitted_from[axis])

    def fixed(self, axis: str) -> str:
        """What does not grow along an axis."""
        point = self.along(axis)[0]["case"]
        return ", ".join(f"{name} = {point[field]}" for field, name in self.axes.items() if field != axis)

    def times_table(self, axis: str) -> Table:
        """The times along one axis: medians, least and most."""
        rows = []
        for one in self.along(axis):
            cells = [durations(one["seconds"][stage]) for stage in self.stages]
            counts = [_counts(one["n_rounds"]), _counts(one["n_setup_rounds"])] if "n_rounds" in one else []
            rows.append([str(one["case"][axis]), *cells, *counts, f"{one['peak_mb']:.0f}"])
        counted = ["rounds", "set-up rounds"] if "n_rounds" in self.along(axis)[0] else []
        header = [self.axes[axis], *(WORDS[stage] for stage in self.stages), *counted, "peak MB"]
        return Table(title=f"Growth with {self.axes[axis]} ({self.fixed(axis)})", header=header, rows=rows)

    def laws_table(self) -> Table:
        """The exponents along all axes."""
        rows = []
        for axis in self.measured():
            laws = [(WORDS[stage], self.seconds(axis, stage).law) for stage in self.stages]
            if "n_rounds" in self.along(axis)[0]:
                laws.append(("number of rounds", self.rounds(axis).law))
            for word, law in laws:
                sizes = "" if law is None else f"{law.sizes[0]} to {law.sizes[-1]}"
                rows.append([word, self.axes[axis], exponent(law), sizes])
        return Table(title="Exponents", header=["of", "with", "exponent (95 % interval)", "fitted over"], rows=rows)

    def measured(self) -> list[str]:
        """The axes along which there are points."""
        return [axis for axis in self.axes if self.along(axis)]

    def tables(self) -> list[Table]:
        """All of them."""
        return [*(self.times_table(axis) for axis in self.measured()), self.laws_table()] if self.records else []


def _counts(values: Sequence[int]) -> str:
    one = spread(values)
    same = one.least == one.most
    return f"{one.median:g}" if same else f"{one.median:g} ({one.least} to {one.most})"
