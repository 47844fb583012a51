"""Noise: the best test there is, with the rows that are told apart most easily, has just the advantage it should.

Two worlds differ in one row (or one table) of one site. Whoever knows everything else takes it out of the released sum;
what is left is noise, and in one world the difference D of the costs. The best statistic is the likelihood ratio,

    t = Dᵀ C⁻¹ (released − known) / (Dᵀ C⁻¹ D)        with C = 2 I + SᵀS, the covariance of noise on M carried to costs,

whose mean is 0 in one world and 1 in the other. Its standard deviation is σ₁ or more if the noise is what it should be.
Advantages themselves are too coarse: over 2000 trials, .098 and .128 (noise 1.3 times too small) look alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from silograph._util.types import Vector
from silograph.audit.findings import Finding, recovered, too_small
from silograph.audit.scene import N_NODES, PAIRS, Scene, added, from_ring, to_ring
from silograph.audit.statistics import advantage_of, mean_bound, relative_error, variance_bounds
from silograph.data.bounded import BoundedMoments, RowBounds
from silograph.privacy.noise import Noise, draw_discrete_gaussian

TOO_SMALL = 1.3  # by which noise is made smaller in the control
CANARIES = {"e₁ or e₂": ((1.0, 0.0), (0.0, 1.0)), "(e₁ ± e₂)/√2": ((1.0, 1.0), (1.0, -1.0))}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statistic:
    """The likelihood ratio's statistic in both worlds."""

    worlds: tuple[Vector, Vector]
    should_be: float  # its standard deviation with the noise that was planned

    @property
    def spread(self) -> float:
        """The standard deviation measured, around the means that it should have."""
        square = [((seen - world) ** 2).mean() for world, seen in enumerate(self.worlds)]
        return sqrt(sum(square) / 2)

    @property
    def means_are_right(self) -> bool:
        """Whether the means are 0 and 1."""
        most = self.should_be * mean_bound(len(self.worlds[0]))
        return all(abs(seen.mean() - world) <= most for world, seen in enumerate(self.worlds))

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which the advantage lies with the noise that was planned."""
        low, high = variance_bounds(sum(map(len, self.worlds)))
        return advantage_of(self.should_be * sqrt(high)), advantage_of(self.should_be * sqrt(low))


def canaries(scene: Scene) -> list[Finding]:
    """Whoever knows all but one row, and the noise of as many sites as the study allows for, guesses that row."""
    noise, colluders = scene.noise(), scene.privacy.collusion if scene.shared else 0
    found = []
    for label, directions in CANARIES.items():
        seen = _trials(scene, noise, directions, colluders=colluders)
        found.append(_advantage(scene, f"noise/{label}", f"which of two rows is in it, by likelihood: {label}", seen))
    return found


def too_little(scene: Scene) -> list[Finding]:
    """The same test must tell noise that is 1.3 times too small."""
    noise = scene.noise()
    colluders = scene.privacy.collusion if scene.shared else 0
    seen = _trials(scene, replace(noise, sigma=noise.sigma / TOO_SMALL), CANARIES["(e₁ ± e₂)/√2"], colluders=colluders)
    promised = replace(seen, should_be=seen.should_be * TOO_SMALL)
    one = _advantage(scene, "noise/too-little", f"the same, noise {TOO_SMALL} times too small", promised)
    low, high = seen.bounds
    return [replace(one, protected=False, control=True, low=low, high=high)]


def shares(scene: Scene) -> list[Finding]:
    """Each site's share has the variance that it should have, neither less nor more."""
    noise, root = scene.noise(), np.linalg.cholesky(covariance())
    found = []
    for site in scene.sites[: min(scene.n_sites, 3)]:
        drawn = np.array([noise.add(np.zeros(PAIRS.size), PAIRS) for _ in range(scene.trials)])
        white = np.linalg.solve(root, drawn.T) / (noise.share * noise.sigma)
        square = float((white**2).mean())
        found.append(
            too_small(
                f"noise/share of {site}",
                f"{site}'s share of the noise",
                "a share that is too small",
                "variance, of what it should be",
                square,
                trials=scene.trials,
                numbers=PAIRS.size,
            )
        )
    return found


def one_colluder_more(scene: Scene) -> list[Finding]:
    """One site more than the study allows for tells its share: the rest is less than promised, and we say so."""
    if not scene.shared or scene.n_sites <= scene.privacy.collusion + 1:
        return []
    noise, colluders = scene.noise(), scene.privacy.collusion + 1
    left = (scene.n_sites - colluders) / (scene.n_sites - scene.privacy.collusion)
    if left > 1 / TOO_SMALL**2 + 0.05:  # so little less that trials would not tell
        return []
    seen = _trials(scene, noise, CANARIES["(e₁ ± e₂)/√2"], colluders=colluders)
    promised = replace(seen, should_be=seen.should_be / sqrt(left))
    one = _advantage(scene, "noise/one more", "the same, one colluder more than allowed for", promised)
    low, high = seen.bounds
    return [replace(one, who=_with(colluders), protected=False, low=low, high=high)]


def reused(scene: Scene) -> list[Finding]:
    """Noise that was used for two cohorts: their difference has none. The code draws anew."""
    noise, (first, second) = scene.noise(), np.random.default_rng(scene.seed).uniform(0, 2, (2, PAIRS.size))
    others = noise.add(first, PAIRS)
    kept = noise.draw(PAIRS) * noise.step
    same = relative_error((others + second + kept) - (others + kept), second)
    drawn = np.array([noise.add(second, PAIRS) - noise.add(second, PAIRS) for _ in range(scene.trials)])
    root = np.linalg.cholesky(covariance())
    square = float((np.linalg.solve(root, drawn.T) ** 2).mean() / (2 * (noise.share * noise.sigma) ** 2))
    return [
        recovered(
            "noise/reused",
            "sums of two cohorts",
            "their difference, if noise were used twice",
            same,
            most=1e-9,
            control=True,
        ),
        too_small(
            "noise/fresh",
            "sums of two cohorts",
            "their difference",
            "variance, of what fresh noise has",
            square,
            trials=scene.trials,
            numbers=PAIRS.size,
        ),
    ]


def saturation(scene: Scene) -> list[Finding]:
    """Drawn numbers at the end of the machine's range: none at the scale we draw at, many at a scale near it."""
    noise = scene.noise()
    scale = noise.share * noise.sigma / noise.step
    ours, control = (_at_the_end(draw_discrete_gaussian(at, 2 * scene.trials)) for at in (scale, 2.0**62))
    return [
        _saturated("noise/saturation", "noise cut off at 64 bits", ours, protected=True, trials=2 * scene.trials),
        _saturated("noise/wide", "the same, drawn at 2⁶² steps", control, protected=False, trials=2 * scene.trials),
    ]


def covariance() -> np.ndarray:
    """Of costs with noise of variance 1 on the diagonal of M and ½ elsewhere: 2 I + SᵀS."""
    ends = np.zeros((PAIRS.size, N_NODES))
    ends[np.arange(PAIRS.size), PAIRS.rows] = ends[np.arange(PAIRS.size), PAIRS.cols] = 1.0
    return 2 * np.eye(PAIRS.size) + ends @ ends.T


def costs_with(scene: Scene, direction: Sequence[float]) -> Vector:
    """The costs of a table with one row in this direction, far too long, or with no others, as sites compute them."""
    row = np.zeros(N_NODES)
    row[: len(direction)] = 1e6 * scene.privacy.longest_row * np.array(direction)
    moments = BoundedMoments(PAIRS, RowBounds(longest=scene.privacy.longest_row, unit=scene.privacy.rows == "unit"))
    if scene.privacy.unit == "table":
        moments.update(np.array([row, row]))
    else:
        rest = np.random.default_rng(scene.seed).normal(size=(scene.n_rows - 1, N_NODES))
        moments.update(np.vstack([rest, row]))
    return moments.costs()


def _trials(
    scene: Scene, noise: Noise, directions: Sequence[Sequence[float]], *, colluders: int, n_sites: int | None = None
) -> Statistic:
    """The statistic in both worlds, over and over, from sums that sites' own code makes."""
    n_sites = n_sites or (scene.n_sites if scene.shared else 1)
    worlds = [costs_with(scene, direction) for direction in directions]
    others = np.random.default_rng(scene.seed).uniform(0, 1, PAIRS.size) * scene.privacy.longest_row**2
    apart = worlds[1] - worlds[0]
    weights = np.linalg.solve(covariance(), apart)
    strength = float(apart @ weights)

    def released(world: Vector) -> Vector:
        """What is left of the sum once everything known was taken out.

        Colluders' terms are in it with their noise, and are taken out to the last bit: so they need not be drawn.
        """
        unknown = n_sites - colluders
        terms = [to_ring(noise.add(world if site == 0 else others, PAIRS)) for site in range(unknown)]
        return from_ring(added(terms)) - (unknown - 1) * others

    seen = [
        np.array([(released(world) - worlds[0]) @ weights / strength for _ in range(scene.trials)]) for world in worlds
    ]
    left = sqrt(n_sites - colluders) * noise.share * noise.sigma
    return Statistic(worlds=(seen[0], seen[1]), should_be=left / sqrt(strength))


def _advantage(scene: Scene, name: str, attack: str, seen: Statistic) -> Finding:
    low, high = seen.bounds
    measured = advantage_of(seen.spread)
    means = ", ".join(f"{world.mean():.2f}" for world in seen.worlds)
    return Finding(
        name=name,
        who=_with(scene.privacy.collusion if scene.shared else 0),
        holds="the released sum, all other rows",
        attack=attack,
        measure="advantage",
        measured=measured,
        low=low,
        high=high,
        broken=measured > high or not seen.means_are_right,
        protected=True,
        trials=2 * scene.trials,
        note=f"statistic: means {means}, deviation {seen.spread:.3f}, which should be {seen.should_be:.3f}",
    )


def _with(colluders: int) -> str:
    return "coordinator" + (f" and {colluders} site{'s' * (colluders > 1)}" if colluders else "")


def _at_the_end(drawn: np.ndarray) -> float:
    return float(np.mean((drawn == np.iinfo(np.int64).max) | (drawn <= -np.iinfo(np.int64).max)))


def _saturated(name: str, attack: str, share: float, *, protected: bool, trials: int) -> Finding:
    return Finding(
        name=name,
        who="coordinator",
        holds="the released sum",
        attack=attack,
        measure="share of numbers",
        measured=share,
        low=0.0 if protected else 0.005,  # two standard deviations: .046
        high=0.0 if protected else 1.0,
        broken=share > 0,
        protected=protected,
        control=not protected,
        trials=trials,
    )
