"""Pins: a site believes the keys that its own people compared, and each change of them is in its log."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import ParameterError, ProtocolError
from silograph.federation.fingerprints import parse_fingerprint, shown_fingerprint
from silograph.federation.folders import SiteFolder
from silograph.federation.identity import public_key_fingerprint, request_fingerprint
from silograph.federation.site.audit import entries, verify
from silograph.federation.site.pins import Pins, describe_pins, unpinned
from silograph.federation.study_file import parse_study
from testing.consortium import make_identity, shared_authority, write_roster

LIMA, KYOTO, OTHER = "ab" * 32, "cd" * 32, "ef" * 32
DIGITS = st.text("0123456789abcdef", min_size=64, max_size=64)


@pytest.fixture
def pins(tmp_path) -> Pins:
    write_roster(tmp_path, ["oslo", "lima", "kyoto"])
    return Pins(tmp_path)


def give_key(folder, name: str) -> str:
    """What `site request` and `site join` leave of a key; its fingerprint."""
    home, certificate = SiteFolder(folder), shared_authority().signer(name).certificate
    home.key.mkdir()
    home.key_request.write_text(json.dumps({"name": name}))
    home.kit.startup.mkdir(parents=True)
    home.kit.certificate.write_bytes(certificate)
    return public_key_fingerprint(certificate)


# --- fingerprints -----------------------------------------------------------------------------------------------------


def test_a_fingerprint_is_that_of_the_public_key_whatever_the_certificate_says_else():
    certificate, key = make_identity("oslo")
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    digest = hashes.Hash(hashes.SHA256())
    digest.update(der)
    expected = digest.finalize().hex()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "another name")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    assert public_key_fingerprint(certificate.public_bytes(Encoding.PEM)) == expected
    assert request_fingerprint(request.public_bytes(Encoding.PEM)) == expected
    assert public_key_fingerprint(make_identity("oslo")[0].public_bytes(Encoding.PEM)) != expected


@pytest.mark.parametrize("fingerprint", [public_key_fingerprint, request_fingerprint])
def test_what_is_no_certificate_has_no_fingerprint(fingerprint):
    with pytest.raises(ProtocolError, match="cannot be read"):
        fingerprint(b"-----BEGIN NOTHING-----")


@given(DIGITS)
def test_a_fingerprint_can_be_typed_as_it_is_shown_or_as_it_is_kept(digits):
    shown = shown_fingerprint(digits)
    for typed in (digits, digits.upper(), shown, shown.lower(), shown.replace(":", " "), f" {shown}\n"):
        assert parse_fingerprint(typed) == digits


@pytest.mark.parametrize("typed", ["", "ab", "AB:CD", "ab" * 31 + "a", "ab" * 33, "ag" * 32, "ab-" * 32])
def test_a_part_of_a_fingerprint_is_none(pins, typed):
    with pytest.raises(ParameterError, match="expected 64 hexadecimal digits"):
        pins.set("lima", typed, by="ada")
    assert pins.all() == {}


# --- pins -------------------------------------------------------------------------------------------------------------


def test_a_pin_is_believed_by_whoever_reads_it_next(pins, tmp_path):
    assert pins.get("lima") is None
    pins.set("lima", shown_fingerprint(LIMA), by="ada")
    assert (pins.get("lima"), Pins(tmp_path).all()) == (LIMA, {"lima": LIMA})
    pin = pins.pinned()["lima"]
    assert (pin.key, pin.by, pin.when[:2]) == (LIMA, "ada", "20")
    assert json.loads((tmp_path / "pins.json").read_text())["format"] == 1
    assert stat.S_IMODE((tmp_path / "pins.json").stat().st_mode) & 0o022 == 0


def test_another_key_is_pinned_only_on_purpose(pins):
    pins.set("lima", LIMA, by="ada")
    pins.set("lima", LIMA, by="bob")  # the same: nothing changes
    with pytest.raises(ParameterError, match=r"Another key of the site 'lima' is pinned: AB:AB.*--replace"):
        pins.set("lima", OTHER, by="bob")
    assert pins.get("lima") == LIMA
    pins.set("lima", OTHER, by="bob", replace=True)
    assert (pins.get("lima"), pins.pinned()["lima"].by) == (OTHER, "bob")


def test_a_key_is_one_sites_only(pins):
    pins.set("lima", LIMA, by="ada")
    with pytest.raises(ParameterError, match="This is the key of 'lima'"):
        pins.set("kyoto", LIMA, by="ada")
    assert pins.all() == {"lima": LIMA}


def test_a_pin_can_be_taken_away(pins):
    pins.set("lima", LIMA, by="ada")
    pins.remove("lima", by="bob")
    assert pins.get("lima") is None
    with pytest.raises(ParameterError, match="No key of the site 'lima' is pinned here"):
        pins.remove("lima", by="bob")


def test_every_change_is_in_the_log_with_what_was_before_and_who_did_it(pins, tmp_path):
    pins.set("lima", LIMA, by="ada")
    pins.set("lima", LIMA, by="ada")
    pins.set("lima", OTHER, by="bob", replace=True)
    pins.remove("lima", by="cid")
    told = [(entry["what"], entry["by"], entry["detail"]) for entry in entries(tmp_path / "audit.jsonl")]
    assert told == [
        ("pinned", "ada", f"the key of lima: none → {LIMA}"),
        ("pinned", "bob", f"the key of lima: {LIMA} → {OTHER}"),
        ("unpinned", "cid", f"the key of lima: {OTHER} → none"),
    ]
    assert verify(tmp_path / "audit.jsonl").problem is None


def test_nothing_is_pinned_that_cannot_be_logged(pins, tmp_path):
    (tmp_path / "audit.jsonl").mkdir()
    with pytest.raises(OSError, match="cannot be written"):
        pins.set("lima", LIMA, by="ada")
    assert pins.all() == {}


@pytest.mark.parametrize("site", ["", "Lima", "../lima", "server", "a" * 41])
def test_a_name_that_no_site_has_is_not_pinned(pins, site):
    with pytest.raises(ParameterError):
        pins.set(site, LIMA, by="ada")
    assert pins.all() == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": 2, "pins": {}}',
        '{"format": 1}',
        '{"format": 1, "pins": []}',
        '{"format": 1, "pins": {"lima": "abab"}}',
        f'{{"format": 1, "pins": {{"lima": {{"key": "{LIMA[:-1]}", "by": "ada", "when": "now"}}}}}}',
        f'{{"format": 1, "pins": {{"li/ma": {{"key": "{LIMA}", "by": "ada", "when": "now"}}}}}}',
        f'{{"format": 1, "pins": {{"lima": {{"key": "{LIMA}", "by": "ada"}}}}}}',
        f'{{"format": 1, "pins": {{"lima": {{"key": "{LIMA}", "by": "ada", "when": 3}}}}}}',
    ],
)
def test_a_damaged_file_is_told_and_neither_believed_nor_overwritten(pins, tmp_path, text):
    (tmp_path / "pins.json").write_text(text)
    for use in (pins.all, lambda: pins.get("lima"), lambda: pins.set("lima", LIMA, by="ada")):
        with pytest.raises(ParameterError, match=r"pins\.json: is damaged.*pin the sites' keys anew"):
            use()
    assert (tmp_path / "pins.json").read_text() == text


def test_pins_that_are_made_at_the_same_time_are_all_kept(pins, tmp_path):
    keys = {f"site-{number}": f"{number:064x}" for number in range(12)}
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda item: Pins(tmp_path).set(*item, by="ada"), keys.items()))
    assert pins.all() == keys
    assert verify(tmp_path / "audit.jsonl").entries == 12


# --- the site's own key -----------------------------------------------------------------------------------------------


def test_the_sites_own_key_counts_as_pinned_and_cannot_be_changed(pins, tmp_path):
    own = give_key(tmp_path, "oslo")
    assert (pins.own(), pins.get("oslo")) == ({"oslo": own}, own)
    pins.set("oslo", own, by="ada")
    with pytest.raises(ParameterError, match="oslo is this site itself"):
        pins.set("oslo", LIMA, by="ada", replace=True)
    with pytest.raises(ParameterError, match="This is the key of 'oslo'"):
        pins.set("lima", own, by="ada")
    assert (pins.all(), pins.pinned()) == ({"oslo": own}, {})
    assert not (tmp_path / "audit.jsonl").exists()


def test_a_pin_in_the_file_does_not_stand_for_the_sites_own_key(pins, tmp_path):
    pins.set("oslo", LIMA, by="ada")
    own = give_key(tmp_path, "oslo")
    assert pins.get("oslo") == own


def test_a_damaged_own_key_is_told(pins, tmp_path):
    give_key(tmp_path, "oslo")
    SiteFolder(tmp_path).key_request.write_text("{")
    with pytest.raises(ParameterError, match="this site's own key is not known"):
        pins.all()


# --- for people -------------------------------------------------------------------------------------------------------


def study(**keys: str):
    listed = ", ".join(f'"{site}"' for site in keys)
    lines = [f'{site} = "{key}"' for site, key in keys.items()]
    text = f'name = "a"\nnodes = ["a", "b"]\nsites = [{listed}]\nshare_graphs = false\n'
    text += '[learn]\nmethod = "oneshot"\n[privacy]\nsums = "masked"\n[keys]\n' + "\n".join(lines)
    return parse_study(text.encode(), source="study")


def test_the_prompt_tells_which_keys_of_a_study_are_pinned(pins, tmp_path):
    own = give_key(tmp_path, "oslo")
    pins.set("lima", LIMA, by="ada")
    shown = shown_fingerprint(KYOTO)
    assert describe_pins(tmp_path, study(oslo=own, lima=LIMA, kyoto=KYOTO)) == [
        "Keys of the study's sites:",
        "  oslo   this site's own",
        "  lima   pinned",
        f"  kyoto  NOT pinned. Ask kyoto by telephone for its key; if it is this one: silograph site pin kyoto {shown}",
    ]
    _, first, second, _ = describe_pins(tmp_path, study(oslo=LIMA, lima=OTHER, kyoto=KYOTO))
    assert first.startswith(f"  oslo   NOT THIS SITE'S KEY: the study says {shown_fingerprint(LIMA)}")
    assert second.startswith(f"  lima   ANOTHER KEY IS PINNED; the study says {shown_fingerprint(OTHER)}")


def test_a_study_without_keys_has_nothing_to_tell(pins, tmp_path):
    (tmp_path / "pins.json").write_text("damaged, and not even looked at")
    assert describe_pins(tmp_path, parse_study(b'name = "a"\nnodes = ["a", "b"]', source="study")) == []


def test_those_who_are_not_pinned_yet_are_listed(pins, tmp_path):
    give_key(tmp_path, "oslo")
    assert unpinned(tmp_path) == ["lima", "kyoto"]
    pins.set("kyoto", KYOTO, by="ada")
    assert unpinned(tmp_path) == ["lima"]
