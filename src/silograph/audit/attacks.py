"""Which attacks concern which settings, and all of them one after the other."""

from collections.abc import Callable, Iterator, Sequence

from silograph.audit import collusion, masked, noise, open_sums, weighted
from silograph.audit.findings import Finding
from silograph.audit.scene import Scene

Attack = Callable[[Scene], list[Finding]]

OPEN: tuple[Attack, ...] = (open_sums.one_round, open_sums.two_versions)
MASKED: tuple[Attack, ...] = (
    masked.generator,
    masked.two_terms,
    masked.told_differently,
    collusion.two_time_pad,
    collusion.without_pins,
    collusion.all_but_one,
    collusion.all_but_two,
)
NOISY: tuple[Attack, ...] = (
    noise.canaries,
    noise.too_little,
    noise.shares,
    noise.one_colluder_more,
    noise.reused,
    noise.saturation,
)
WEIGHTED: tuple[Attack, ...] = (weighted.outlier, weighted.common_weight)
REFUSED: tuple[Attack, ...] = (weighted.refused,)
PUBLISHED: tuple[Attack, ...] = (weighted.published,)


def attacks_on(scene: Scene) -> tuple[Attack, ...]:
    """The attacks that concern these settings."""
    privacy, every = scene.privacy, scene.everything
    chosen: Sequence[tuple[bool, tuple[Attack, ...]]] = (
        (every or not (privacy.masked or privacy.noisy), OPEN),
        (every or privacy.masked, MASKED),
        (every or privacy.noisy, NOISY),
        (every or scene.sums > 1, WEIGHTED),
        (every or privacy.masked or privacy.noisy, REFUSED),
        (every or not privacy.noisy, PUBLISHED),
    )
    return tuple(attack for wanted, attacks in chosen if wanted for attack in attacks)


def run_attacks(scene: Scene, on_progress: Callable[[str, float | None], None]) -> Iterator[Finding]:
    """Every finding, as it is made."""
    attacks = attacks_on(scene)
    for number, attack in enumerate(attacks):
        on_progress((attack.__doc__ or "").partition(":")[0].partition(".")[0], number / len(attacks))
        yield from attack(scene)
