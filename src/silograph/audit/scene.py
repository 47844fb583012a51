"""What the attacks are run against: the settings of a study, and small tables made for it.

Tables have few nodes, whatever the study has: no claim depends on their number, and an attack is to be run often.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from silograph._util.types import Matrix, Vector
from silograph.data.moments import Moments
from silograph.errors import ParameterError
from silograph.graph.pairs import Pairs
from silograph.methods.common.registry import spec_of
from silograph.methods.common.settings import StudySettings
from silograph.methods.oneshot import OneSum
from silograph.privacy.masks import Masker, shared_secret
from silograph.privacy.noise import Noise, plan_noise
from silograph.privacy.settings import Privacy
from silograph.protocol.exchange import answer_task
from silograph.protocol.fixed import Limbs, Rounding, add_limbs, add_vector, vector_of, zeros
from silograph.protocol.messages import Header, Task, Update, parts_of
from silograph.protocol.silo import Silo, SiloState
from silograph.protocol.sums import add_up

N_NODES, N_ROWS = 6, 200
PAIRS = Pairs.all(N_NODES)
LEAST_TRIALS = 500  # below, noise 1.3 times too small may go unnoticed
MADE = Privacy(sums="masked", epsilon=1.0, delta=1e-5, min_samples=N_ROWS)
STEP = "costs"
SETUP = OneSum(settings=StudySettings(method="oneshot", alpha=1.0, beta=1.0), degree=None)
TASK = Task(header=Header(run="audit", method=SETUP.name, step=STEP, round=1), parts={})
UNIT = 0  # costs are counted in ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The settings under attack."""

    title: str = "a self-made consortium"
    privacy: Privacy = MADE
    method: str = "oneshot"
    sums: int = 1
    n_sites: int = 3
    everything: bool = True  # every attack; else those that concern the settings
    trials: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trials < LEAST_TRIALS:
            raise ParameterError(f"trials: expected {LEAST_TRIALS} at least, got {self.trials}: fewer prove nothing.")

    @property
    def one_sum(self) -> bool:
        """Whether the method opens one sum and no more."""
        return spec_of(self.method).one_sum and self.sums == 1

    @property
    def shared(self) -> bool:
        """Whether each site adds a share of the noise."""
        return self.privacy.masked and self.privacy.noisy

    @property
    def n_rows(self) -> int:
        """Rows of a table."""
        return self.privacy.min_samples or N_ROWS

    @property
    def sites(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(f"site-{number:02d}" for number in range(1, self.n_sites + 1))

    def noise(self) -> Noise:
        """What one site adds."""
        return plan_noise(
            self.privacy, n_nodes=N_NODES, n_sites=self.n_sites, min_samples=self.n_rows, shared=self.shared
        )

    def tables(self, n_sites: int | None = None) -> list[Matrix]:
        """A table of each site: signals that have something in common."""
        rng = np.random.default_rng(self.seed)
        common = rng.normal(size=(N_NODES, N_NODES))
        own = [common + 0.3 * rng.normal(size=(N_NODES, N_NODES)) for _ in range(n_sites or self.n_sites)]
        return [rng.normal(size=(N_ROWS, N_NODES)) @ mix for mix in own]


def costs_of(table: Matrix) -> Vector:
    """z/N of a table."""
    return Moments.of(table, PAIRS).costs()


def silo_of(name: str, table: Matrix) -> Silo:
    """A table as a silo."""
    return Silo(name=name, pairs=PAIRS, cost=costs_of(table), n_samples=len(table))


def answers_of(silos: Sequence[Silo]) -> list[Update]:
    """What each silo answers when it is asked for its term: the server's process receives these."""
    return [answer_task(SETUP, silo, SiloState(), TASK, report=False)[0] for silo in silos]


def term_in(answer: Update) -> Vector:
    """The term that an answer holds."""
    return np.asarray(parts_of(answer)["cost"])


def sum_of(answers: Sequence[Update]) -> Vector:
    """What the coordinator's half of the method receives."""
    return add_up(answers, SETUP.steps[STEP].up, SETUP.units(TASK)).vector("cost")


def to_ring(values: Vector) -> Limbs:
    """Numbers as the ring has them."""
    limbs = zeros(len(values))
    add_vector(limbs, values, UNIT, Rounding.NEAREST)
    return limbs


def from_ring(limbs: Limbs) -> Vector:
    """Numbers of the ring as floats."""
    return vector_of(limbs, UNIT, Rounding.NEAREST)


def added(terms: Sequence[Limbs]) -> Limbs:
    """Their sum in the ring."""
    total = zeros(len(terms[0]))
    for term in terms:
        add_limbs(total, term)
    return total


# --- masks ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """One site's ephemeral key."""

    private: X25519PrivateKey

    @property
    def public(self) -> bytes:
        """What others get."""
        return self.private.public_key().public_bytes_raw()


def fresh_keys(names: Sequence[str]) -> dict[str, Keys]:
    """A key for each."""
    return {name: Keys(private=X25519PrivateKey.generate()) for name in names}


def masker_of(name: str, keys: dict[str, Keys], *, transcript: bytes = b"H") -> Masker:
    """A site's masks, from its own key and the others' public ones."""
    secrets = {other: shared_secret(keys[name].private, key.public) for other, key in keys.items() if other != name}
    return Masker(name=name, secrets=secrets, transcript=transcript)


def masked(masker: Masker, term: Limbs, *, task: bytes = b"task") -> Limbs:
    """What the site sends."""
    return masker.mask({"cost": term}, task=task, stage="setup", round=1)["cost"]
