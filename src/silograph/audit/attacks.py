"""Which attacks concern which settings, and all of them one after the other."""

from collections.abc import Callable, Iterator, Sequence

from silograph.audit import collusion, ledgers, masked, noise, open_sums, refusals, sites, weighted
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
AT_OPEN_SITES: tuple[Attack, ...] = (ledgers.another_version, refusals.ranges)
AT_MASKED_SITES: tuple[Attack, ...] = (
    sites.read_answers,
    sites.second_certificate,
    sites.other_rosters,
    sites.after_restart,
    sites.lonely_pair,
    ledgers.called_missing,
)
AT_NOISY_SITES: tuple[Attack, ...] = (
    ledgers.over_budget, ledgers.averaged, ledgers.changed_elsewhere, refusals.false_sums,
)  # fmt: skip
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
        (every or not privacy.noisy, AT_OPEN_SITES),
        (every or privacy.masked, AT_MASKED_SITES),
        (every or privacy.noisy, AT_NOISY_SITES),
    )
    return tuple(attack for wanted, attacks in chosen if wanted for attack in attacks)


def run_attacks(scene: Scene, on_progress: Callable[[str, float | None], None]) -> Iterator[Finding]:
    """Every finding, as it is made."""
    attacks = attacks_on(scene)
    for number, attack in enumerate(attacks):
        on_progress((attack.__doc__ or "").partition(":")[0].partition(".")[0], number / len(attacks))
        yield from attack(scene)
