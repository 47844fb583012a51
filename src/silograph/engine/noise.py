"""Noise where all silos are in this process: each counts as a site, as it would if it were one.

A method that opens one sum has noise on that sum: each silo adds its share of it, or, without masks, all of it. For all
other methods each silo's own costs carry noise from the beginning, so that whatever is made of them is as private.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from silograph._util.naming import setting
from silograph.engine.checkpoint import Checkpoint
from silograph.errors import ParameterError, SilosError
from silograph.graph.pairs import Pairs
from silograph.methods.common.settings import StudySettings
from silograph.privacy.noise import Noise, plan_noise
from silograph.privacy.settings import LEAST_MASKED_SITES, Privacy
from silograph.protocol.messages import Field, Update, parts_of
from silograph.protocol.silo import Silo


def with_min_samples(settings: StudySettings, silos: Sequence[Silo]) -> StudySettings:
    """The settings with the least number of rows that counts as known: the one given, which all have, or the least."""
    privacy = settings.privacy
    if not privacy.noisy:
        return settings
    _check_silos(privacy, len(silos))
    samples = {silo.name: silo.n_samples for silo in silos}
    known = [n for n in samples.values() if n is not None]
    if len(known) < len(silos):
        raise ParameterError("epsilon: distances without rows have no bound that it could rest on. Give the signals.")
    if privacy.unit == "table":
        return settings
    least = min(known) if privacy.min_samples is None else privacy.min_samples
    for name, n_samples in samples.items():
        if n_samples is not None and n_samples < least:
            raise SilosError(f"{name}: expected at least {least} rows (min_samples), got {n_samples}. Lower it.")
    return replace(settings, privacy=replace(privacy, min_samples=least))


def _check_silos(privacy: Privacy, n_silos: int) -> None:
    """As between sites, in the words of a user who has silos and no sites."""
    if privacy.masked and n_silos < LEAST_MASKED_SITES:
        raise ParameterError(
            f"masked: shares of noise need {LEAST_MASKED_SITES} silos at least, got {n_silos}. Let each silo add "
            f"all of the noise: {setting('masked', False)}."
        )
    privacy.check_sites(n_silos)


def plan_for(settings: StudySettings, pairs: Pairs, n_silos: int) -> Noise | None:
    """The noise that each silo adds; none without ε."""
    privacy = settings.privacy
    if not privacy.noisy:
        return None
    return plan_noise(
        privacy,
        n_nodes=pairs.n_nodes,
        n_sites=n_silos,
        min_samples=privacy.min_samples,
        shared=privacy.masked,
        n_tables=n_silos,
    )


def add_noise(updates: Sequence[Update], fields: Mapping[str, Field], noise: Noise, pairs: Pairs) -> list[Update]:
    """The answers, with fresh noise on what does not leave without."""
    names = [name for name, field in fields.items() if field.noisy]
    if not names:
        return list(updates)

    def protect(update: Update) -> Update:
        parts = parts_of(update)
        return replace(update, _parts={**parts, **{name: noise.add(np.asarray(parts[name]), pairs) for name in names}})

    return [protect(update) for update in updates]


def noisy_silos(silos: Sequence[Silo], noise: Noise, *, folder: Path | None, run_id: str) -> list[Silo]:
    """The silos, their costs with noise; kept in the folder, so that a run that is resumed has the same."""
    kept = None if folder is None else Checkpoint(folder, run_id=run_id)
    tree = None if kept is None else kept.load()
    costs = {silo.name: noise.add(silo.cost, silo.pairs) for silo in silos} if tree is None else tree["costs"]
    if kept is not None and tree is None:
        kept.save({"costs": costs})
    return [noisy_silo(silo, costs[silo.name]) for silo in silos]


def noisy_silo(silo: Silo, cost: np.ndarray) -> Silo:
    """The silo with these costs alone: blocks of its rows would be exact. Sums of squares are never below zero."""
    return replace(silo, cost=np.maximum(cost, 0.0), blocks=None)
