"""Who is of a federation: sites with the key on file, until it is revoked, and those that their people know."""

import shutil
from pathlib import Path

import pytest

from silograph.errors import ParameterError, ProtocolError, SilosError
from silograph.federation.coordinator.attempt import run_attempt
from silograph.federation.coordinator.request import NO_KEY
from silograph.federation.coordinator.supervisor import MissingSitesError, Supervisor
from silograph.federation.envelope import SignedMessage, open_message
from silograph.federation.folders import FederationFolder
from silograph.federation.identity import Signer, Trust, public_key_fingerprint
from silograph.federation.invitation import Invitation, read_invitation, write_invitation
from silograph.federation.members import KeysOnFile, add_sites, is_revoked, remove_site, revoke_key, was_revoked
from silograph.federation.site.audit import entries
from testing.consortium import SITES, Consortium, Loopback, approve, close, shared_authority, write_roster

INVITATION = Invitation(name="test", server="localhost", port=8002, sites=SITES, fingerprint="0" * 64)


def put(federation: FederationFolder, site: str, signer: Signer) -> str:
    """As when the site's request is signed; the fingerprint of its key."""
    federation.certificates.mkdir(exist_ok=True)
    federation.certificate(site).write_bytes(signer.certificate)
    return public_key_fingerprint(signer.certificate)


@pytest.fixture
def federation(tmp_path: Path) -> FederationFolder:
    made = FederationFolder(tmp_path)
    for path in (made.about, made.invitation("test")):
        write_invitation(path, INVITATION)
    for site in SITES:
        put(made, site, shared_authority().signer(site))
    return made


# --- the key on file --------------------------------------------------------------------------------------------------


def test_a_revoked_key_is_off_the_file_at_once_and_another_can_follow(federation: FederationFolder) -> None:
    keys = KeysOnFile(federation)
    key = keys("oslo")
    assert key == public_key_fingerprint(shared_authority().signer("oslo").certificate)
    assert keys.objection("oslo", key) is None
    assert revoke_key(federation, "oslo") == key
    assert (keys("oslo"), is_revoked(federation, "oslo"), was_revoked(federation, key)) == (None, True, True)
    assert keys.objection("oslo", key) == "its key was revoked"
    new = put(federation, "oslo", shared_authority().new_signer("oslo"))
    assert (keys("oslo"), is_revoked(federation, "oslo")) == (new, False)
    assert keys.objection("oslo", key) == "its key was revoked"
    assert keys.objection("oslo", new) is None


def test_an_older_copy_of_the_certificates_brings_no_revoked_key_back(federation: FederationFolder) -> None:
    """Where the root key is elsewhere, sites/ is copied to and fro."""
    copy = federation.path / "copy"
    shutil.copytree(federation.certificates, copy)
    revoke_key(federation, "oslo")
    shutil.copytree(copy, federation.certificates, dirs_exist_ok=True)
    assert federation.certificate("oslo").exists()
    assert KeysOnFile(federation)("oslo") is None


def test_a_certificate_that_was_put_in_place_is_seen_at_once(federation: FederationFolder) -> None:
    keys = KeysOnFile(federation)
    before = keys("oslo")
    renewed = shared_authority().new_signer("oslo", days=(-1, 900), key=shared_authority().signer("oslo").key)
    assert put(federation, "oslo", renewed) == before == keys("oslo")
    assert keys("oslo") == before
    other = put(federation, "oslo", shared_authority().new_signer("oslo"))
    assert keys("oslo") == other != before
    assert "another key of it is on file" in str(keys.objection("oslo", str(before)))


@pytest.mark.parametrize("name", ["paris", "", "..", "../sites/oslo", "oslo.crt", "OSLO"])
def test_a_name_without_a_certificate_has_no_key(federation: FederationFolder, name: str) -> None:
    assert KeysOnFile(federation)(name) is None
    assert "no key of it is on file" in str(KeysOnFile(federation).objection(name, "0" * 64))


def test_what_was_never_signed_cannot_be_revoked_nor_anything_twice(federation: FederationFolder) -> None:
    with pytest.raises(SilosError, match="'paris' was not approved here"):
        revoke_key(federation, "paris")
    revoke_key(federation, "oslo")
    with pytest.raises(SilosError, match="'oslo' was revoked already"):
        revoke_key(federation, "oslo")


def test_a_damaged_certificate_is_named_and_nobody_is_believed_for_it(federation: FederationFolder) -> None:
    federation.certificate("oslo").write_text("nonsense")
    with pytest.raises(ProtocolError, match=r"oslo\.crt: is damaged"):
        KeysOnFile(federation)("oslo")


# --- whom the coordinator believes ------------------------------------------------------------------------------------


def test_of_all_that_the_root_signed_only_the_key_on_file_is_believed(federation: FederationFolder) -> None:
    """A second certificate of a name, an older key, the key of a site that was revoked meanwhile."""
    authority = shared_authority()
    trust = Trust(authority.root, KeysOnFile(federation))
    own, second = authority.signer("oslo"), authority.new_signer("oslo")
    data = SignedMessage({"kind": "answer"}, b"", own).to("coordinator")[0]
    other = SignedMessage({"kind": "answer"}, b"", second).to("coordinator")[0]
    assert open_message(data, trust).sender == "oslo"
    assert open_message(other, authority.trust).sender == "oslo"  # as sites, who do not know the file, take it
    with pytest.raises(ProtocolError, match="a key that is not on file for 'oslo'"):
        open_message(other, trust)
    renewed = authority.new_signer("oslo", key=own.key)
    assert open_message(SignedMessage({}, b"", renewed).to("coordinator")[0], trust).sender == "oslo"
    revoke_key(federation, "oslo")
    assert not trust.knows("oslo")
    with pytest.raises(ProtocolError, match="a key that is not on file for 'oslo'"):
        open_message(data, trust)


@pytest.fixture
def run_with_keys(tmp_path: Path):
    """A consortium whose coordinator has the sites' keys on file."""
    consortium = Consortium(tmp_path)
    run = consortium.run('method = "exact"\ndegree = 3')
    for site in SITES:
        put(run.federation, site, consortium.signers[site])
    return consortium, run


def attempt(consortium, run, transport):
    trust = Trust(consortium.authority.root, KeysOnFile(run.federation))
    outcome = run_attempt(run, transport, attempt="a", signer=consortium.server, trust=trust)
    close(transport.services)
    return outcome


def test_with_its_keys_on_file_a_run_ends_well(run_with_keys) -> None:
    consortium, run = run_with_keys
    assert attempt(consortium, run, Loopback(consortium.services())).ended == "done"


def test_a_site_revoked_in_the_middle_of_a_run_is_asked_and_believed_no_more(run_with_keys) -> None:
    consortium, run = run_with_keys
    asked = []

    def tamper(site, data, service):
        if site == "oslo":
            asked.append(data)
            if len(asked) == 3:
                revoke_key(run.federation, "oslo")
        return service(data)

    outcome = attempt(consortium, run, Loopback(consortium.services(), tamper))
    assert outcome.ended == "trouble"
    (trouble,) = outcome.troubles
    assert (trouble["site"], trouble["kind"], trouble["reason"]) == ("oslo", "rejected", NO_KEY)
    assert len(asked) == 3


def test_answers_by_an_older_key_of_a_site_are_not_believed(run_with_keys) -> None:
    consortium, run = run_with_keys
    put(run.federation, "oslo", consortium.authority.new_signer("oslo"))
    outcome = attempt(consortium, run, Loopback(consortium.services()))
    assert outcome.ended == "trouble"
    assert [trouble["site"] for trouble in outcome.troubles] == ["oslo"]
    assert "a key that is not on file" in outcome.troubles[0]["reason"]


@pytest.mark.parametrize("policy", ["wait", "stop"])
def test_nobody_waits_for_a_revoked_site(tmp_path: Path, policy: str) -> None:
    consortium = Consortium(tmp_path)
    run = consortium.run('method = "exact"\ndegree = 3', f'on_missing = "{policy}"')
    put(run.federation, "oslo", consortium.signers["oslo"])
    revoke_key(run.federation, "oslo")
    with pytest.raises(MissingSitesError, match=f"oslo: {NO_KEY}. The run is kept"):
        Supervisor(run, None, tell=print, on_poll=lambda run: None).finish()


# --- who is on the list -----------------------------------------------------------------------------------------------


def test_sites_are_added_and_removed_without_a_file_being_edited(federation: FederationFolder) -> None:
    add_sites(federation, ["bonn", "paris"])
    for path in (federation.about, federation.invitation("test")):
        assert read_invitation(path).sites == (*SITES, "bonn", "paris")
    remove_site(federation, "bonn")
    key = KeysOnFile(federation)("oslo")
    remove_site(federation, "oslo")
    for path in (federation.about, federation.invitation("test")):
        assert read_invitation(path).sites == ("kyoto", "lima", "paris")
    assert was_revoked(federation, str(key))


@pytest.mark.parametrize(
    ("names", "reason"),
    [(["oslo"], "oslo: of this federation already"), (["bonn", "bonn"], "each name once"), (["Bonn"], "site name")],
)
def test_what_cannot_be_a_new_site_is_refused_and_nothing_changes(
    federation: FederationFolder, names: list[str], reason: str
) -> None:
    with pytest.raises((ParameterError, ProtocolError), match=reason):
        add_sites(federation, names)
    assert read_invitation(federation.about) == INVITATION


def test_a_site_that_is_not_there_cannot_be_removed(federation: FederationFolder) -> None:
    with pytest.raises(ParameterError, match="no site 'paris'"):
        remove_site(federation, "paris")


# --- with whom a site takes part --------------------------------------------------------------------------------------


def outcome_with_a_newcomer(consortium: Consortium, **top: str):
    """A run of three sites, of which the others were not told of oslo when they joined."""
    for site in ("kyoto", "lima"):
        write_roster(consortium.folder / site, ("kyoto", "lima"))
    run = consortium.run('method = "exact"\ndegree = 3', **top)
    services = consortium.services()
    outcome = consortium.run_attempt(run, Loopback(services))
    close(services)
    return run, outcome


NAMED = '["kyoto", "lima", "oslo"]'


@pytest.mark.parametrize("top", [{}, {"sites": NAMED}], ids=["sites not named", "sites named"])
def test_a_site_that_approves_all_takes_part_with_nobody_its_people_do_not_know(tmp_path, top) -> None:
    _, outcome = outcome_with_a_newcomer(Consortium(tmp_path), **top)
    assert {(one["site"], one["code"]) for one in outcome.troubles} <= {("kyoto", "sites"), ("lima", "sites")}
    assert outcome.troubles
    said = [entry for entry in entries(tmp_path / outcome.troubles[0]["site"] / "audit.jsonl") if "code" in entry]
    assert said[-1]["detail"] == "oslo: not in federation.invite, nor pinned"


def test_a_pin_says_that_a_newcomer_is_known(tmp_path) -> None:
    consortium = Consortium(tmp_path)
    for site in ("kyoto", "lima"):
        consortium.pin(site)
    _, outcome = outcome_with_a_newcomer(consortium)
    assert outcome.ended == "done"


def test_who_approves_a_study_that_names_a_newcomer_takes_part_with_it(tmp_path) -> None:
    consortium = Consortium(tmp_path, approve_all=False)
    run = consortium.run('method = "exact"\ndegree = 3', sites=NAMED)
    for site in SITES:
        approve(tmp_path / site, run.study().text)
    _, outcome = outcome_with_a_newcomer(consortium, sites=NAMED)
    assert outcome.ended == "done"


def test_who_approved_a_study_without_names_did_not_agree_to_a_newcomer(tmp_path) -> None:
    consortium = Consortium(tmp_path, approve_all=False)
    run = consortium.run('method = "exact"\ndegree = 3')
    for site in SITES:
        approve(tmp_path / site, run.study().text)
    _, outcome = outcome_with_a_newcomer(consortium)
    assert {one["code"] for one in outcome.troubles} == {"sites"}


# --- a certificate on file that is damaged ----------------------------------------------------------------------------


def test_one_damaged_certificate_is_warned_of_and_hurts_no_other_site(federation: FederationFolder) -> None:
    from silograph.federation.certificates import federation_warnings
    from silograph.federation.nvflare.authority import site_keys

    federation.certificate("oslo").write_bytes(b"")
    assert set(site_keys(federation.path)) == {"kyoto", "lima"}
    assert any("oslo.crt: the certificate cannot be read" in text for text in federation_warnings(federation.path))
    assert KeysOnFile(federation).objection("oslo", "1" * 64) == "its certificate on file is damaged"


@pytest.mark.parametrize("name", ["lead", "server", "conductor"])
def test_of_our_own_keys_it_is_said_what_a_theft_takes(federation: FederationFolder, name: str) -> None:
    with pytest.raises(SilosError, match=r"cannot be revoked: .* found a new federation"):
        revoke_key(federation, name)
