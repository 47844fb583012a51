"""What masks cost a site: computing them, and apart from that the exchange of keys.

    python -m benchmarks.federation.masks

For 3 to 20 sites: the masks of one answer at 4 950 and 500 500 pairs (100 and 1001 nodes), and the keys of one run: a
key of one's own, signed, all others' checked (RSA), and a secret with each (X25519). The best of some repetitions.
"""

import datetime as dt
import time
from collections.abc import Callable

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from benchmarks.machine import facts
from silograph.federation.identity import Signer, Trust, public_key_fingerprint
from silograph.federation.keys import Terms, join_statements
from silograph.federation.site.masking import Masking
from silograph.privacy.masks import Masker
from silograph.protocol.fixed import Rounding, add_vector, zeros

SITES, PAIRS, REPEATS = (3, 5, 10, 20), (4_950, 500_500), 5


def best(act: Callable[[], object]) -> float:
    """Milliseconds."""
    found = np.inf
    for _ in range(REPEATS):
        began = time.perf_counter()
        act()
        found = min(found, time.perf_counter() - began)
    return 1e3 * found


def masks(n_sites: int, n_pairs: int) -> float:
    """Of one answer, as it is masked at a site."""
    secrets = {f"site-{k}": bytes([k]) * 32 for k in range(1, n_sites)}
    limbs = zeros(n_pairs)
    add_vector(limbs, np.random.default_rng(0).random(n_pairs), 0, Rounding.NEAREST)

    def mask() -> None:
        masker = Masker(name="site-0", secrets=secrets, transcript=bytes(32))
        masker.mask({"cost": limbs}, task=bytes(32), stage="setup", round=1)

    mask()  # compiled
    return best(mask)


def keys(n_sites: int) -> tuple[float, float]:
    """To make and sign a key, and to check all sites' and share a secret with each."""
    root = identity("root", None)
    signers = {f"site-{k:02d}": identity(f"site-{k:02d}", root) for k in range(n_sites)}
    fingerprints = {site: public_key_fingerprint(signer.certificate) for site, signer in signers.items()}
    terms = Terms(
        study="a" * 64,
        run="0123456789abcdef.1",
        roster=tuple(signers),
        nodes="b" * 64,
        n_pairs=PAIRS[-1],
        missing_nodes=False,
        noisy=False,
        keys=fingerprints,
    )

    def make(site: str) -> Masking:
        return Masking(terms, site=site, least=2, has=None, signer=signers[site])

    others = {site: make(site) for site in signers}
    statements = [others[site].statement for site in signers]

    def exchange() -> None:
        own = others["site-00"]
        own._accepted = None  # as if it had not seen them
        own.accept(join_statements(statements), Trust(root.certificate))

    return best(lambda: make("site-00")), best(exchange)


def identity(name: str, issuer: Signer | None) -> Signer:
    """A certificate and its key, as the federation makes them."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    issued_by = name if issuer is None else "root"
    builder = x509.CertificateBuilder().subject_name(named(name)).issuer_name(named(issued_by))
    now = dt.datetime.now(dt.UTC)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
    certificate = builder.sign(key if issuer is None else issuer.key, SHA256())
    return Signer(certificate=certificate.public_bytes(Encoding.PEM), key=key)


def named(name: str) -> x509.Name:
    """A certificate's name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def main() -> None:
    """Print the table."""
    machine = facts()
    print(f"{machine['cpu']}, load {machine['load']}, Python {machine['python']}")
    print(f"{'sites':>5}  " + "  ".join(f"{n:>9,} pairs" for n in PAIRS) + "   key made   keys checked   [ms]")
    for n_sites in SITES:
        found = [masks(n_sites, n_pairs) for n_pairs in PAIRS]
        made, checked = keys(n_sites)
        print(f"{n_sites:>5}  " + "  ".join(f"{ms:>15.2f}" for ms in found) + f"   {made:>8.2f}   {checked:>12.2f}")


if __name__ == "__main__":
    main()
