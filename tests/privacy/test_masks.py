"""Masks cancel in the sum, and only there."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph.errors import ProtocolError
from silograph.privacy.masks import (
    LABEL,
    PIECE,
    Masker,
    apply_mask,
    decode_injectively,
    encode_injectively,
    shared_secret,
)
from silograph.protocol.fixed import (
    RING,
    Rounding,
    add_limbs,
    add_vector,
    subtract_limbs,
    vector_of,
    whole_numbers,
    zeros,
)

TASK = {"task": b"t" * 32, "stage": "setup", "round": 1}


def maskers(names: list[str], *, transcript: bytes = b"H") -> list[Masker]:
    keys = {name: X25519PrivateKey.generate() for name in names}
    public = {name: key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw) for name, key in keys.items()}
    return [
        Masker(
            name=name,
            secrets={other: shared_secret(keys[name], public[other]) for other in names if other != name},
            transcript=transcript,
        )
        for name in names
    ]


def limbs_of(values: np.ndarray) -> np.ndarray:
    limbs = zeros(len(values))
    add_vector(limbs, values, 0, Rounding.NEAREST)
    return limbs


@settings(max_examples=25, deadline=None)
@given(n_sites=st.integers(2, 7), size=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_the_sum_of_masked_numbers_is_the_sum_of_the_numbers_to_the_last_bit(n_sites, size, seed):
    rng = np.random.default_rng(seed)
    terms = [limbs_of(rng.normal(size=size) * 10.0 ** rng.integers(-9, 9)) for _ in range(n_sites)]
    sites = maskers([f"site-{k}" for k in range(n_sites)])
    plain, masked = zeros(size), zeros(size)
    for site, term in zip(sites, terms, strict=True):
        add_limbs(plain, term)
        add_limbs(masked, site.mask({"cost": term}, **TASK)["cost"])
    np.testing.assert_array_equal(masked, plain)


def test_a_masked_term_tells_nothing_of_its_size():
    site = maskers(["a", "b", "c"])[0]
    bits = np.unpackbits(site.mask({"cost": zeros(4000)}, **TASK)["cost"].view(np.uint8))
    assert abs(bits.mean() - 0.5) < 5 * 0.5 / np.sqrt(bits.size)


@pytest.mark.parametrize(
    "other", [{"task": b"u" * 32}, {"stage": "learn"}, {"round": 2}], ids=["task", "stage", "round"]
)
def test_sites_that_were_told_different_things_add_up_to_noise(other):
    first, second, third = maskers(["a", "b", "c"])
    total = zeros(5)
    for site, told in ((first, TASK), (second, TASK), (third, TASK | other)):
        add_limbs(total, site.mask({"cost": limbs_of(np.ones(5))}, **told)["cost"])
    assert (np.abs(vector_of(total, 0, Rounding.NEAREST)) > 1e10).all()


def test_a_task_is_masked_once():
    site = maskers(["a", "b", "c"])[0]
    site.mask({"cost": zeros(2)}, **TASK)
    with pytest.raises(ProtocolError, match="before"):
        site.mask({"cost": zeros(2)}, **TASK)


@pytest.mark.parametrize("key", [bytes(32), b"\x01" + bytes(31)])
def test_a_key_that_would_make_the_secret_known_is_refused(key):
    with pytest.raises(ProtocolError, match="key"):
        shared_secret(X25519PrivateKey.generate(), key)


@given(st.lists(st.binary(max_size=6), max_size=4), st.lists(st.binary(max_size=6), max_size=4))
def test_no_two_lists_are_encoded_alike(one, other):
    assert (encode_injectively(*one) == encode_injectively(*other)) == (one == other)


def mask_of(secret: bytes, info: bytes) -> list[int]:
    limbs = zeros(3)
    apply_mask(limbs, secret, info, subtract=False)
    return whole(limbs)


def test_a_mask_depends_on_secret_and_purpose():
    masks = [mask_of(b"s" * 32, b"a"), mask_of(b"s" * 32, b"b"), mask_of(b"t" * 32, b"a")]
    assert len({number for mask in masks for number in mask}) == 9


@pytest.mark.parametrize("size", [1, PIECE - 1, PIECE, 2 * PIECE + 5])
@pytest.mark.parametrize("subtract", [False, True])
def test_a_mask_is_the_key_stream_of_its_key_whatever_its_length(size, subtract):
    """By an independent way: one stream as whole numbers, modulo 2¹⁹²."""
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=LABEL + b"info").derive(b"s" * 32)
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(24 * size))
    shared = [int.from_bytes(stream[k : k + 24], "little") for k in range(0, len(stream), 24)]
    limbs = limbs_of(np.arange(size, dtype=float) - 3)
    expected = [(one - two if subtract else one + two) % RING for one, two in zip(whole(limbs), shared, strict=True)]
    apply_mask(limbs, b"s" * 32, b"info", subtract=subtract)
    assert whole(limbs) == expected


def whole(limbs: np.ndarray) -> list[int]:
    return [number % RING for number in whole_numbers(limbs)]


@given(st.lists(st.binary(max_size=6), max_size=4))
def test_parts_are_read_as_they_were_encoded(parts):
    data = encode_injectively(*parts)
    assert decode_injectively(data, most=4) == parts
    for cut in range(1, len(data)):
        try:
            assert encode_injectively(*decode_injectively(data[:cut], most=4)) == data[:cut]
        except ProtocolError:
            continue


@given(st.lists(st.floats(-1e20, 1e20), min_size=1, max_size=20))
def test_what_is_added_can_be_taken_out(values):
    limbs = limbs_of(np.array(values))
    total = limbs_of(np.ones(len(values)))
    add_limbs(total, limbs)
    subtract_limbs(total, limbs)
    np.testing.assert_array_equal(total, limbs_of(np.ones(len(values))))
