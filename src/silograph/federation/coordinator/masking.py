"""The coordinator's part in a masked sum: it brings the sites' keys to each other, and adds up what it cannot read."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from silograph._util.checks import list_names
from silograph._util.files import write_bytes
from silograph.errors import SilosError
from silograph.federation.envelope import VerifiedMessage
from silograph.federation.identity import Trust
from silograph.federation.keys import Terms, join_statements, read_statement, shown_pairs
from silograph.federation.study_file import StudyFile
from silograph.graph.pairs import Pairs
from silograph.privacy.noise import plan_noise

TAIL = 40.0  # standard deviations that noise never exceeds


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExchange:
    """The keys of one generation of a run. Its file is there once every site has them."""

    terms: Terms
    file: Path
    trust: Trust
    noise: float  # by which a sum of costs may be off

    @property
    def is_done(self) -> bool:
        """Whether all sites have had all keys: what they have answered since was masked by these."""
        return self.file.exists()

    def take(self, site: str, reply: VerifiedMessage) -> bytes:
        """A site's statement; raises, and names the site, for one that the others would not believe."""
        read_statement(reply.body, site, self.terms, self.trust)
        return reply.body

    def join(self, statements: Sequence[bytes], pairs: Pairs, nodes: Sequence[str]) -> bytes:
        """What goes to every site; raises where a node would be in no pair that the sum may show."""
        sites = zip(self.terms.roster, statements, strict=True)
        read = [read_statement(data, site, self.terms, self.trust) for site, data in sites]
        shown = shown_pairs(read, self.terms.n_pairs)
        if shown is not None:
            had = pairs.degrees(shown.astype(np.float64)) > 0
            had[pairs.isolated()] = True
            if not had.all():
                least = max(statement.least for statement in read)
                names = [nodes[int(node)] for node in np.flatnonzero(~had)]
                raise SilosError(
                    f"Expected each node of the study with some other one in {least} sites at least, which their "
                    f"min_sites asks for; {list_names(names)}: is in fewer, so that the sum would show a site. Leave "
                    "such nodes out of the study."
                )
        return join_statements(statements)

    def keep(self, statements: bytes) -> None:
        """Write down that all sites have the keys, before the first of them is asked for its sum."""
        self.file.parent.mkdir(exist_ok=True)
        write_bytes(self.file, statements, durable=True)


def plan_exchange(study: StudyFile, terms: Terms, n_nodes: int, *, file: Path, trust: Trust) -> KeyExchange:
    """The exchange of a masked study's run."""
    privacy, n_sites, noise = study.settings.privacy, len(terms.roster), 0.0
    if privacy.noisy:
        least = privacy.min_samples
        share = plan_noise(privacy, n_nodes=n_nodes, n_sites=n_sites, min_samples=least, shared=True)
        noise = TAIL * sqrt(n_sites) * share.cost_sigma
    return KeyExchange(terms=terms, file=file, trust=trust, noise=noise)
