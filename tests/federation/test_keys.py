"""Signed keys: what the sites of a run believe of each other, and thousands of things that none of them believes."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from silograph.errors import ProtocolError
from silograph.federation.identity import Signer, public_key_fingerprint
from silograph.federation.keys import (
    LABEL,
    KeyStatement,
    Terms,
    WrongKeyError,
    join_statements,
    pack_pairs,
    read_statement,
    shown_pairs,
    sign_statement,
    split_statements,
    transcript_of,
)
from silograph.federation.refusals import Refused
from silograph.federation.site.masking import Masking
from silograph.privacy.masks import decode_injectively, digest_of, encode_injectively
from testing.consortium import SITES, Authority, self_signed, shared_authority

N_PAIRS = 28
TRUST = shared_authority().trust


def signer(site: str) -> Signer:
    return shared_authority().signer(site)


def terms(**other: object) -> Terms:
    keys = {site: public_key_fingerprint(signer(site).certificate) for site in SITES}
    known = {"study": "a" * 64, "run": "0123456789abcdef.1", "roster": SITES, "nodes": "b" * 64, "n_pairs": N_PAIRS}
    return Terms(**{**known, "missing_nodes": True, "noisy": False, "keys": keys, **other})


def statement(site: str = "oslo", **other: object) -> KeyStatement:
    public = X25519PrivateKey.generate().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    has = pack_pairs(np.arange(N_PAIRS) % 5 > 0)
    return KeyStatement(**{"site": site, "key": public, "least": 2, "has": has, **other})


def signed(site: str = "oslo", **other: object) -> bytes:
    return sign_statement(statement(site, **other), terms(), signer(site))


def test_a_statement_is_read_as_it_was_signed():
    given = statement()
    assert read_statement(sign_statement(given, terms(), signer("oslo")), "oslo", terms(), TRUST) == given
    lacks_none = replace(given, has=None)
    assert read_statement(sign_statement(lacks_none, terms(), signer("oslo")), "oslo", terms(), TRUST) == lacks_none


# --- what nobody believes ---------------------------------------------------------------------------------------------


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The bytes with a small or a large change."""
    at, length = rng.randrange(len(data)), rng.randint(1, 40)
    ways: list[Callable[[], bytes]] = [
        lambda: data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :],
        lambda: data[:at] + rng.randbytes(length) + data[at:],
        lambda: data[:at] + data[at + length :],
        lambda: data[:at],
        lambda: data[:at] + data[at : at + length] * 2 + data[at + length :],
        lambda: data[:at] + rng.randbytes(length) + data[at + length :],
        lambda: data + rng.randbytes(length),
        lambda: data[:at] + bytes(length) + data[at + length :],
    ]
    return rng.choice(ways)()


def test_of_1500_damaged_statements_none_is_believed_and_each_error_names_the_site():
    rng, genuine, tried = random.Random(15), signed(), 0
    while tried < 1500:
        data = damaged(genuine, rng)
        if data == genuine:
            continue
        tried += 1
        with pytest.raises(ProtocolError, match=r"^oslo, key: "):
            read_statement(data, "oslo", terms(), TRUST)


@cache
def parts() -> list[bytes]:
    return decode_injectively(statement().encode(terms()), most=10)


def forged(position: int, value: bytes, by: Signer | None = None) -> bytes:
    """A statement that the site itself signed, or somebody else, with one part that is not as it should be."""
    by = by or signer("oslo")
    text = encode_injectively(*(value if k == position else part for k, part in enumerate(parts())))
    digest = digest_of(LABEL, text, by.certificate)
    return encode_injectively(text, by.certificate, by.sign(digest))


WRONG = {
    "label": (0, b"silograph key 2"),
    "study": (1, b"c" * 64),
    "run": (2, b"0123456789abcdef.2"),
    "roster: one less": (3, encode_injectively(*(site.encode() for site in SITES[:-1]))),
    "roster: order": (3, encode_injectively(*(site.encode() for site in SITES[::-1]))),
    "roster: joined": (3, encode_injectively("".join(SITES).encode())),
    "nodes": (4, b"c" * 64),
    "site": (5, b"lima"),
    "key: short": (6, bytes(31)),
    "key: zero": (6, bytes(32)),
    "key: one": (6, b"\x01" + bytes(31)),
    "least: none": (7, b""),
    "least: 0": (7, b"0"),
    "least: more than sites": (7, b"4"),
    "least: 02": (7, b"02"),
    "least: words": (7, b"two"),
    "pairs: short": (8, bytes(3)),
    "pairs: long": (8, bytes(5)),
    "pairs: beyond the last": (8, b"\xff" * 4),
    "a name for data without noise": (9, bytes(16)),
}


@pytest.mark.parametrize(("position", "value"), WRONG.values(), ids=WRONG)
def test_a_site_that_signs_something_else_is_named(position, value):
    assert read_statement(forged(6, parts()[6]), "oslo", terms(), TRUST)
    with pytest.raises(ProtocolError, match=r"^oslo, key: "):
        read_statement(forged(position, value), "oslo", terms(), TRUST)


def test_where_no_node_may_be_missing_no_site_tells_of_its_pairs():
    given = terms(missing_nodes=False)
    with pytest.raises(ProtocolError, match="expected all pairs"):
        read_statement(sign_statement(statement(), given, signer("oslo")), "oslo", given, TRUST)


@pytest.mark.parametrize("data", [b"", bytes(15), bytes(17)])
def test_with_noise_each_site_has_a_name_for_its_data(data):
    given = terms(noisy=True)
    named = sign_statement(statement(data=b"n" * 16), given, signer("oslo"))
    assert read_statement(named, "oslo", given, TRUST).data == b"n" * 16
    with pytest.raises(ProtocolError, match="name for its data"):
        read_statement(sign_statement(statement(data=data), given, signer("oslo")), "oslo", given, TRUST)


def test_a_second_certificate_of_the_same_name_and_root_is_another_key():
    """The coordinator holds the root key: it can make itself an oslo."""
    second = shared_authority().new_signer("oslo")
    with pytest.raises(WrongKeyError, match=r"^oslo, key: .*another key than the study names"):
        read_statement(sign_statement(statement(), terms(), second), "oslo", terms(), TRUST)


def test_a_renewed_certificate_of_the_same_key_is_believed():
    old = signer("oslo")
    renewed = shared_authority().new_signer("oslo", key=old.key)
    assert renewed.certificate != old.certificate
    assert read_statement(sign_statement(statement(), terms(), renewed), "oslo", terms(), TRUST)


@pytest.mark.parametrize(
    ("by", "match"),
    [
        (lambda: shared_authority().signer("lima"), "was signed by 'lima'"),
        (lambda: self_signed("oslo"), "none of this federation's"),
        (lambda: Authority("other").signer("oslo"), "none of this federation's"),
        (lambda: shared_authority().new_signer("oslo", days=(-2, -1)), "not valid today"),
    ],
    ids=["another site", "nobody", "another federation", "an old certificate"],
)
def test_what_others_sign_is_not_believed(by, match):
    with pytest.raises(ProtocolError, match=match):
        read_statement(sign_statement(statement(), terms(), by()), "oslo", terms(), TRUST)


def test_a_statement_of_any_size_is_not_looked_at():
    with pytest.raises(ProtocolError, match="expected at most"):
        read_statement(bytes(terms().largest_statement + 1), "oslo", terms(), TRUST)
    assert len(signed()) < terms().largest_statement


# --- all sites' statements at one site --------------------------------------------------------------------------------


@dataclass
class Meeting:
    """Three sites with keys, and what each has signed."""

    sites: dict[str, Masking]
    statements: list[bytes]


def meeting(**other: object) -> Meeting:
    about = terms(**other)
    sites = {site: Masking(about, site=site, least=2, has=None, signer=signer(site)) for site in SITES}
    return Meeting(sites, [sites[site].statement for site in SITES])


def test_sites_that_get_each_others_keys_are_ready():
    met = meeting()
    for site in met.sites.values():
        site.accept(join_statements(met.statements), TRUST)
        assert site.is_ready


def wrong_rosters(met: Meeting) -> Iterator[list[bytes]]:
    """What a coordinator could send instead of the three statements."""
    first, second, third = met.statements
    yield [first, third, second]
    yield [second, first, third]
    yield [first, second]
    yield [first, second, third, third]
    yield [first, first, third]
    yield [third, second, third]
    yield []
    for other in ({"run": "0123456789abcdef.2"}, {"study": "c" * 64}, {"nodes": "c" * 64}, {"roster": SITES[::-1]}):
        elsewhere = dict(zip(other.get("roster", SITES), meeting(**other).statements, strict=True))
        yield [first, elsewhere["lima"], third]
    fake = sign_statement(statement("lima", has=None), terms(), shared_authority().new_signer("lima"))
    yield [first, fake, third]


@pytest.mark.parametrize("site", ["kyoto", "oslo"])
def test_no_other_list_of_statements_is_accepted(site):
    met = meeting()
    for number, wrong in enumerate(wrong_rosters(met)):
        with pytest.raises((Refused, ProtocolError)):
            met.sites[site].accept(join_statements(wrong), TRUST)
        assert not met.sites[site].is_ready, number
    met.sites[site].accept(join_statements(met.statements), TRUST)


def test_of_1000_damaged_lists_none_is_accepted_and_the_culprit_is_named_where_it_shows():
    rng, met, named = random.Random(4), meeting(), 0
    genuine, site = join_statements(met.statements), met.sites["oslo"]
    tried = 0
    while tried < 1000:
        data = damaged(genuine, rng)
        if data == genuine:
            continue
        tried += 1
        with pytest.raises((Refused, ProtocolError)) as refused:
            site.accept(data, TRUST)
        assert not site.is_ready
        named += str(refused.value).startswith(("kyoto, key: ", "lima, key: "))
    assert named > 200
    site.accept(genuine, TRUST)
    assert site.is_ready


def test_a_list_where_one_is_damaged_names_it():
    met = meeting()
    middle = bytearray(met.statements[1])
    middle[-1] ^= 1
    with pytest.raises(Refused, match=r"^lima, key: ") as refused:
        met.sites["oslo"].accept(join_statements([met.statements[0], bytes(middle), met.statements[2]]), TRUST)
    assert refused.value.code == "malformed"


def test_a_second_oslo_is_refused_for_its_pin():
    met = meeting()
    fake = sign_statement(statement("oslo", has=None), terms(), shared_authority().new_signer("oslo"))
    with pytest.raises(Refused, match=r"^oslo, key: ") as refused:
        met.sites["lima"].accept(join_statements([*met.statements[:2], fake]), TRUST)
    assert refused.value.code == "pins"


def test_keys_once_accepted_are_not_exchanged_for_others():
    met = meeting()
    genuine = join_statements(met.statements)
    met.sites["oslo"].accept(genuine, TRUST)
    met.sites["oslo"].accept(genuine, TRUST)
    other = join_statements([met.statements[0], signed("lima", has=None), met.statements[2]])
    with pytest.raises(Refused) as refused:
        met.sites["oslo"].accept(other, TRUST)
    assert refused.value.code == "conflict"


def test_a_site_whose_own_key_is_another_says_that_keys_are_gone():
    met = meeting()
    other = join_statements([*met.statements[:2], signed("oslo", has=None)])
    with pytest.raises(Refused) as refused:
        met.sites["oslo"].accept(other, TRUST)
    assert refused.value.code == "keys"


def test_lists_that_differ_in_anything_have_different_transcripts():
    met = meeting()
    lists = [met.statements, met.statements[::-1], [b"".join(met.statements)], [*met.statements, b""]]
    assert len({transcript_of(one) for one in lists}) == len(lists)
    assert split_statements(join_statements(met.statements), terms()) == met.statements


# --- pairs ------------------------------------------------------------------------------------------------------------


def test_pairs_are_shown_that_as_many_sites_have_as_the_most_careful_asks_for(rng):
    has = rng.random((4, N_PAIRS)) < 0.6
    for leasts in ((2, 2, 2, 2), (1, 1, 3, 2), (4, 2, 2, 2)):
        told = [
            statement(str(k), has=pack_pairs(one), least=least)
            for k, (one, least) in enumerate(zip(has, leasts, strict=True))
        ]
        expected = has.sum(axis=0) >= max(leasts)
        found = shown_pairs(told, N_PAIRS)
        assert expected.all() if found is None else np.array_equal(found, expected)
    assert shown_pairs([statement(str(k), has=None) for k in range(3)], N_PAIRS) is None
