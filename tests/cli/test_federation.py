"""`silograph federation` and `silograph site`, as far as no server needs to run: founding, joining, approving, logs."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from typer.testing import CliRunner

pytest.importorskip("nvflare")

from silograph.cli.app import app
from silograph.federation.fingerprints import shown_fingerprint
from silograph.federation.identity import public_key_fingerprint
from silograph.federation.invitation import Invitation, read_invitation, write_invitation
from silograph.federation.nvflare.kits import make_request
from silograph.federation.site.approvals import Approvals, sha_of
from silograph.federation.site.audit import AuditLog, entries
from silograph.federation.site.pins import Pins
from silograph.federation.site.settings import read_site
from silograph.federation.study_file import read_study
from testing.consortium import write_table
from testing.real_federation import free_port

NODES = tuple(f"region {k}" for k in range(8))
STUDY = 'name = "brains"\nnodes = "nodes.txt"\n[learn]\nmethod = "exact"\nrounds = 6\nalpha = 0.5\nbeta = 0.25\n'
COMMANDS = {
    "federation": [
        "new",
        "approve",
        "start",
        "status",
        "runs",
        "abort",
        "forget",
        "study",
        "run",
        "demo",
        "renew",
        "revoke",
        "add-site",
        "remove-site",
    ],
    "site": [
        "request",
        "join",
        "start",
        "status",
        "doctor",
        "pin",
        "approve",
        "budget",
        "restored",
        "log",
        "stability",
        "renew",
    ],
}


def silograph(*arguments: str | Path, code: int = 0, says: str = "", answer: str | None = None):
    """Run a command in this process; it must end with this code and say this, on whichever stream."""
    result = CliRunner().invoke(app, [str(one) for one in arguments], input=answer)
    said = " ".join(result.output.split())
    assert result.exit_code == code, f"{result.exit_code}: {result.output} {result.exception!r}"
    assert says in said, result.output
    assert "Traceback" not in result.output
    return result


def everything_in(folder: Path) -> dict[str, bytes]:
    """All files, to see that nothing was written."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def key_of(site: str) -> str:
    """The fingerprint of a site's key, from its key itself."""
    key = load_pem_private_key(Path(site, "key", f"{site}.key").read_bytes(), password=None)
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


class Made(NamedTuple):
    """What is made once: kits take seconds."""

    root: Path
    said: str  # by `federation new`


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    """A federation by the command; oslo has asked and is signed, lima has asked, kyoto has not.

    In `elsewhere`, an oslo has asked to join another federation.
    """
    root = tmp_path_factory.mktemp("made")
    (root / "regions.txt").write_text("\n".join(NODES) + "\n")
    address = {"server": "localhost", "port": free_port()}  # where nobody listens
    foreign = Invitation(name="foreign", sites=("oslo", "lima"), fingerprint="0" * 64, **address)
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor() as pool:
        patch.chdir(root)
        asked = pool.submit(make_request, root / "elsewhere", foreign, "oslo")
        options = ["--server", "localhost", "--sites", "oslo", "lima", "kyoto", "--nodes", "regions.txt"]
        said = silograph("federation", "new", "brain-study", *options, "--port", str(address["port"])).output
        for site in ("oslo", "lima"):
            silograph("site", "request", "brain-study/brain-study.invite", "--site", site)
        silograph("federation", "approve", "oslo/oslo.request.zip")
        asked.result()
    for seed, site in enumerate(("oslo", "lima")):
        write_table(root / f"{site}.csv", seed, nodes=NODES)
    return Made(root, said)


@pytest.fixture
def here(made, tmp_path, monkeypatch) -> Path:
    """A copy of all of it as the working folder, for one test to change."""
    shutil.copytree(made.root, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def site(here) -> Path:
    """The folder of a site that has joined, as far as commands without a server see it."""
    home = here / "oslo"
    text = f'name = "oslo"\nfederation = "brain-study"\nserver = "localhost"\ndata = "{here}/oslo.csv"\n'
    (home / "site.toml").write_text(text)
    return home


@pytest.mark.parametrize("words", [[group, name] for group, names in COMMANDS.items() for name in names], ids=" ".join)
def test_every_command_explains_itself(words):
    said = silograph(*words, "--help", says="Usage:").output
    assert len(said.splitlines()) > 8


def test_no_command_is_without_a_test_of_its_help():
    for group, names in COMMANDS.items():
        said = silograph(group, "--help").output
        assert set(re.findall(r"^[│|] (\w[\w-]*) ", said, flags=re.MULTILINE)) == set(names)


# --- founding ---------------------------------------------------------------------------------------------------------


def test_a_new_federation_has_all_it_takes_and_says_what_to_do(made):
    folder = made.root / "brain-study"
    invitation = read_invitation(folder / "brain-study.invite")
    assert (invitation.sites, invitation.nodes) == (("oslo", "lima", "kyoto"), NODES)
    assert invitation.server == "localhost"
    assert f"Sites must reach localhost, port {invitation.port}" in made.said
    assert invitation.shown_fingerprint() in made.said
    for words in ("Founded brain-study in brain-study/", "brain-study/brain-study.invite", "federation approve"):
        assert words in made.said
    assert tuple((folder / "nodes.txt").read_text().splitlines()) == NODES
    assert sorted(path.name for path in folder.iterdir()) == [
        "brain-study.invite", "ca", "conductor", "federation.json", "lead", "logs", "nodes.txt", "server", "sites",
        "storage",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["new-one", "--sites", "oslo"], 2, "at least two sites, got 1"),
        (["new-one", "--sites", "Oslo", "lima"], 2, "'Oslo'"),
        (["new-one", "--sites", "oslo", "li/ma"], 2, "'li/ma'"),
        (["new-one", "--sites", "oslo", ".."], 2, "'..'"),
        (["new-one", "--sites", "oslo", "lima", "oslo"], None, "got 'oslo' again"),
        (["new-one", "--sites", "oslo", "server"], None, "cannot be called 'server'"),
        (["new one", "--sites", "oslo", "lima"], None, "'new one'"),
        (["../new-one", "--sites", "oslo", "lima"], None, "'../new-one'"),
        (["new-one", "--sites", "oslo", "lima", "--port", "0"], None, "port must be between 1 and 65535"),
        (["new-one", "--sites", "oslo", "lima", "--server", "10.0.0.1"], None, "A bare IP address"),
        (["new-one", "--sites", "oslo", "lima", "--nodes", "nowhere.txt"], 2, "nowhere.txt"),
        (["new-one", "--sites", "oslo", "lima", "--nodes", "empty.txt"], 2, "empty.txt"),
        (["new-one", "--sites", "oslo", "lima", "--nodes", "twice.csv"], 2, "twice.csv, column 3"),
        (["new-one"], 2, "Missing option '--sites'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_founded_is_refused_and_leaves_nothing(tmp_path, monkeypatch, arguments, code, says):
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    Path("empty.txt").write_text("# nothing\n")
    Path("twice.csv").write_text("a,b,a\n1,2,3\n")
    before = everything_in(tmp_path)
    server = [] if "--server" in arguments else ["--server", "localhost"]
    result = CliRunner().invoke(app, ["federation", "new", *arguments, *server])
    assert result.exit_code == code or (code is None and result.exit_code in (1, 2)), result.output
    assert says in " ".join(result.output.replace("│", " ").split()), result.output
    assert everything_in(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


def test_a_folder_with_something_in_it_is_left_alone(here):
    before = everything_in(here)
    options = ["--server", "localhost", "--sites", "oslo", "lima"]
    silograph("federation", "new", "brain-study", *options, code=1, says="brain-study: exists already")
    silograph("federation", "new", "other", *options, "--folder", "oslo", code=1, says="oslo: exists already")
    assert everything_in(here) == before


def test_a_federation_without_nodes_asks_for_them_before_a_study_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--server", "localhost", "--sites", "oslo,lima", "--port", "9000"]
    said = silograph("federation", "new", "bare", *options, "--folder", "there").output
    assert "Write the names of your nodes into there/nodes.txt" in said
    assert read_invitation(Path("there/bare.invite")).nodes is None
    silograph(
        "federation", "study", "--folder", "there", says="Wrote there/study.toml: the exact method with oslo, lima"
    )
    study = ["federation", "run", "there/study.toml", "--out", "run"]
    silograph(*study, code=2, says="there/nodes.txt: expected names, 2 at least, got 0")
    assert not Path("run").exists()


# --- asking, signing, joining -----------------------------------------------------------------------------------------


def test_a_request_says_what_to_compare_and_what_to_send(here):
    said = silograph("site", "request", "brain-study/brain-study.invite", "--site", "kyoto").output
    assert read_invitation(here / "brain-study/brain-study.invite").shown_fingerprint() in said
    assert shown_fingerprint(key_of("kyoto")) in said
    assert "by a second way, such as the telephone" in said
    assert "Send to the coordinator: kyoto/kyoto.request.zip" in said
    assert "silograph site join kyoto.signed.zip --data YOUR-TABLE-OR-FOLDER" in said
    with zipfile.ZipFile("kyoto/kyoto.request.zip") as archive:
        assert not [name for name in archive.namelist() if name.endswith(".key")]
    again = ["site", "request", "brain-study/brain-study.invite", "--site", "kyoto"]
    silograph(*again, code=1, says="has a key already")


@pytest.mark.parametrize(
    ("invitation", "name", "says"),
    [
        (
            "brain-study/brain-study.invite",
            "quito",
            "oslo, lima, kyoto. If it was added later, ask the coordinator for the new",
        ),
        ("nowhere.invite", "kyoto", "nowhere.invite: cannot be read"),
        ("oslo.csv", "kyoto", "oslo.csv: is damaged or no invitation"),
    ],
)
def test_a_request_without_a_right_invitation_is_refused(here, invitation, name, says):
    before = everything_in(here)
    silograph("site", "request", invitation, "--site", name, code=1, says=says)
    assert everything_in(here) == before
    assert not (here / name).exists()


def test_a_signed_request_says_what_to_send_back(here):
    shutil.copy("lima/lima.request.zip", "as-it-came.zip")  # the name that counts is the one inside
    said = silograph("federation", "approve", "as-it-came.zip").output
    assert "Send to lima: lima.signed.zip" in said
    assert shown_fingerprint(key_of("lima")) in said
    assert "silograph site join lima.signed.zip --data THEIR-TABLE-OR-FOLDER" in said
    assert Path("lima.signed.zip").is_file()
    assert Path("brain-study/sites/lima.crt").is_file()


@pytest.mark.parametrize(
    ("request_zip", "says"),
    [
        ("elsewhere/oslo.request.zip", "asks to join 'foreign', this federation is 'brain-study'"),
        ("nowhere.request.zip", "nowhere.request.zip: is not there"),
        ("oslo.csv", "oslo.csv: cannot be read, or is no site's request"),
        ("cut.request.zip", "cut.request.zip: cannot be read, or is no site's request"),
        ("oslo.signed.zip", "oslo.signed.zip: cannot be read, or is no site's request"),
        ("altered.request.zip", "asks for the rights of a 'server'"),
        ("stranger.request.zip", "the site 'quito' is not of this federation"),
        ("nonsense.request.zip", "is no site's request"),
    ],
)
def test_a_request_that_does_not_fit_is_not_signed(here, request_zip, says):
    whole = Path("lima/lima.request.zip")
    Path("cut.request.zip").write_bytes(whole.read_bytes()[:-200])
    rewrite(whole, Path("altered.request.zip"), lambda about: about | {"kind": "server"})
    rewrite(whole, Path("stranger.request.zip"), lambda about: about | {"name": "quito"})
    rewrite(whole, Path("nonsense.request.zip"), lambda about: [1])
    before = everything_in(here)
    options = ["--folder", "brain-study", "--out", "lima.signed.zip"]
    silograph("federation", "approve", request_zip, *options, code=1, says=says)
    assert everything_in(here) == before


def test_a_request_whose_key_was_exchanged_on_the_way_is_not_signed(here):
    """Its metadata are those of lima; the signing request is one that oslo made."""
    with zipfile.ZipFile("oslo/oslo.request.zip") as archive:
        other = archive.read("oslo.csr")
    rewrite(Path("lima/lima.request.zip"), Path("lima.request.zip"), lambda about: about, {"lima.csr": other})
    before = everything_in(here)
    approve = ["federation", "approve", "lima.request.zip", "--folder", "brain-study"]
    silograph(*approve, code=1, says="has the key of 'oslo'. Each site makes its own")
    assert everything_in(here) == before


def rewrite(source: Path, target: Path, change, replaced: dict[str, bytes] | None = None) -> None:
    """The same archive with other metadata, or other members."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = (replaced or {}).get(name, old.read(name))
            new.writestr(name, json.dumps(change(json.loads(data))) if name == "request.json" else data)


def test_another_key_for_a_site_is_signed_only_by_force(here):
    shutil.rmtree("oslo")
    silograph("site", "request", "brain-study/brain-study.invite", "--site", "oslo")
    before = everything_in(here)
    approve = ["federation", "approve", "oslo/oslo.request.zip"]
    silograph(*approve, code=1, says="'oslo' was signed before, for another key")
    assert everything_in(here) == before
    silograph(*approve, "--force", says="Send to oslo")
    assert Path("oslo.signed.zip").read_bytes() != before["oslo.signed.zip"]


def test_joining_installs_the_kit_and_says_what_leaves(here):
    options = ["--keep-graph", "--min-samples", "30", "--max-rounds", "77"]
    said = silograph("site", "join", "oslo.signed.zip", "--data", "oslo.csv", *options).output
    assert "oslo.csv: 40 samples of 8 nodes (just the federation's nodes)." in said
    assert "Joined brain-study as oslo" in said
    assert "your own graph, at the end, if the study asks for it: no" in said
    assert "your number of samples and edges, and your contribution: yes" in said
    assert "What does not leave" in said
    assert shown_fingerprint(key_of("oslo")) in said
    assert "Not pinned yet: lima, kyoto." in said
    settings = read_site(here / "oslo")
    assert (settings.min_samples, settings.max_rounds, settings.share_graph) == (30, 77, False)
    assert (settings.report, settings.approve_all) == (True, False)
    assert settings.data_in(here / "oslo") == [here / "oslo.csv"]
    assert (here / "oslo" / "kit" / "startup" / "client.crt").is_file()
    assert tuple((here / "oslo" / "nodes.txt").read_text().splitlines()) == NODES
    again = ["site", "join", "oslo.signed.zip", "--data", "oslo.csv"]
    silograph(*again, code=1, says="this site has joined already")


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (["oslo/tables"], '"tables"'),
        (["oslo/tables/*.csv"], '"tables/*.csv"'),
        (["oslo/tables/p[0-2].csv", "oslo/tables/p[3-9].csv"], '["tables/p[0-2].csv", "tables/p[3-9].csv"]'),
    ],
    ids=["a folder", "a pattern", "several"],
)
def test_a_site_with_many_patients_joins_and_is_told_that_sums_leave(here, data, kept):
    (here / "oslo" / "tables").mkdir()
    for number in range(6):
        write_table(here / "oslo" / "tables" / f"p{number}.csv", number, nodes=NODES, n_samples=10)
    words = [word for place in data for word in ("--data", place)]
    silograph("site", "join", "oslo.signed.zip", *words, "--min-tables", "7", code=1, says="has 6 tables, fewer than")
    said = silograph("site", "join", "oslo.signed.zip", *words).output
    assert "6 tables: 60 samples of 8 nodes (just the federation's nodes)." in said
    assert "the sum over your tables of numbers per pair of nodes" in said
    assert "names of patients" in said
    assert "your own graph" not in said
    assert f"data = {kept}" in (here / "oslo" / "site.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["oslo.signed.zip", "--data", "nowhere.csv"], 1, "nowhere.csv"),
        (["oslo.signed.zip", "--data", "nowhere/*.csv"], 1, "nowhere/*.csv"),
        (["oslo.signed.zip", "--data", "oslo.csv", "--data", "few.csv"], 1, "has 2 tables, fewer than this site's own"),
        (["oslo.signed.zip", "--data", "other.csv"], 1, "'area 0'"),
        (["oslo.signed.zip", "--data", "few.csv"], 1, "few.csv: has 19 samples, fewer than this site's own minimum"),
        (["oslo.signed.zip", "--data", "words.csv"], 1, "words.csv"),
        (["oslo.signed.zip", "--data", "oslo.csv", "--drop", "age"], 1, "age"),
        (["oslo.signed.zip", "--data", "oslo.csv", "--min-samples", "-1"], 2, "min_samples"),
        (
            ["nowhere.signed.zip", "--data", "oslo.csv", "--folder", "oslo"],
            1,
            "nowhere.signed.zip: cannot be read, or is no signed request",
        ),
        (
            ["oslo.csv", "--data", "oslo.csv", "--folder", "oslo"],
            1,
            "oslo.csv: cannot be read, or is no signed request",
        ),
        (["oslo.signed.zip", "--data", "oslo.csv", "--folder", "lima"], 1, "is signed for the site 'oslo'"),
        (["foreign.signed.zip", "--data", "oslo.csv", "--folder", "oslo"], 1, "is of the federation 'foreign'"),
        (["oslo.signed.zip", "--data", "oslo.csv", "--folder", "nowhere"], 2, "nowhere: is no site's folder"),
        (["quito.signed.zip", "--data", "oslo.csv"], 1, "quito.signed.zip: cannot be read, or is no signed request"),
        (["oslo.signed.zip"], 2, "Missing option '--data'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_who_cannot_join_is_told_why_and_nothing_is_written(here, arguments, code, says):
    write_table(here / "other.csv", 0, nodes=[f"area {k}" for k in range(8)])
    write_table(here / "few.csv", 0, nodes=NODES, n_samples=19)
    text = (here / "oslo.csv").read_text().splitlines()
    (here / "words.csv").write_text("\n".join([*text[:20], "high" + text[20][text[20].index(",") :], *text[21:]]))
    with zipfile.ZipFile("foreign.signed.zip", "w") as archive:
        about = {"name": "oslo", "project": "foreign", "ca_info": {"rootCA_fingerprint": "SHA256:" + "0" * 64}}
        archive.writestr("signed.json", json.dumps(about))
    before = everything_in(here)
    result = silograph("site", "join", *arguments, code=code)
    assert says in " ".join(result.output.replace("│", " ").split())
    assert everything_in(here) == before
    assert not (here / "oslo" / "kit").exists()


def test_a_column_that_is_no_node_is_dropped_by_the_option_that_the_message_names(here):
    for name, cells in (("subject_id", "s{}"), ("age", "4{}")):
        lines = (here / "oslo.csv").read_text().splitlines()
        lines = [f"{name},{lines[0]}", *(f"{cells.format(k)},{line}" for k, line in enumerate(lines[1:]))]
        (here / "oslo.csv").write_text("\n".join(lines))
    join = ["site", "join", "oslo.signed.zip", "--data", "oslo.csv"]
    silograph(*join, code=1, says="drop those that are no nodes (--drop age --drop subject_id), until they agree.")
    silograph(
        *join, "--drop", "age", code=1, says="drop those that are no nodes (--drop subject_id), until they agree."
    )
    silograph(*join, "--drop", "subject_id", "--drop", "age", says="Joined brain-study as oslo")
    rewritten = (here / "oslo" / "site.toml").read_text().replace('["subject_id", "age"]', '["subject_id"]')
    (here / "oslo" / "site.toml").write_text(rewritten)
    Path("study.toml").write_text(STUDY.replace('"nodes.txt"', json.dumps(NODES)))
    approve = ["site", "approve", "study.toml", "--folder", "oslo"]
    silograph(*approve, code=1, says='drop those that are no nodes (drop = ["age"] in site.toml), until they agree')


@pytest.mark.parametrize(
    "command", [["start"], ["approve"], ["log"], ["budget"], ["stability", "run.1"], ["restored"]], ids=" ".join
)
def test_before_anybody_has_joined_the_way_to_join_is_told(here, command, monkeypatch):
    before = everything_in(here)
    silograph("site", *command, code=2, says="Found several sites' folders here")
    join = "Join first, with what the coordinator sent back: silograph site join oslo.signed.zip --data"
    silograph("site", *command, "--folder", "oslo", code=2, says=join)
    assert everything_in(here) == before
    shutil.rmtree("oslo/key")
    request = "silograph site request oslo/federation.invite --site NAME --folder oslo"
    silograph("site", *command, "--folder", "oslo", code=2, says=f"Ask first: {request}")
    (here / "empty").mkdir()
    monkeypatch.chdir(here / "empty")
    says = "Found no site's folder here. Make one first: silograph site request NAME.invite --site SITE"
    silograph("site", *command, code=2, says=says)


def test_a_site_whose_invitation_names_another_root_does_not_join(here):
    """As if somebody between had posed as the coordinator."""
    invitation = here / "oslo" / "federation.invite"
    write_invitation(invitation, replace(read_invitation(invitation), fingerprint="ab" * 32))
    before = everything_in(here)
    join = ["site", "join", "oslo.signed.zip", "--data", "oslo.csv"]
    silograph(*join, code=1, says="signed below another root certificate than the invitation's")
    assert everything_in(here) == before


def test_joining_works_inside_the_sites_own_folder(here, monkeypatch):
    monkeypatch.chdir(here / "oslo")
    silograph("site", "join", "../oslo.signed.zip", "--data", "../oslo.csv", says="Joined brain-study as oslo")


def test_a_renewed_certificate_keeps_the_key_the_pins_and_the_approvals(here):
    """As the guide says: the first request is signed again, and the site joins again with its own settings."""
    join = ["site", "join", "oslo.signed.zip", "--data", "oslo.csv"]
    silograph(*join)
    Path("study.toml").write_text(STUDY)
    Path("lima.csv").write_bytes(Path("oslo.csv").read_bytes())
    silograph("site", "approve", "study.toml", "--yes", "--folder", "oslo", says="Approved.")
    silograph("site", "pin", "lima", key_of("lima"), "--folder", "oslo")
    kit, kept = Path("oslo/kit/startup/client.crt"), Path("oslo/site.toml")
    key, certificate, pins, limits = key_of("oslo"), kit.read_bytes(), Pins(Path("oslo")).all(), kept.read_bytes()
    silograph("federation", "approve", "oslo/oslo.request.zip", says=shown_fingerprint(key))
    kept.unlink()
    silograph(*join, says=shown_fingerprint(key))
    kept.write_bytes(limits)
    assert kit.read_bytes() != certificate
    assert public_key_fingerprint(kit.read_bytes()) == public_key_fingerprint(certificate) == key
    assert Pins(Path("oslo")).all() == pins == {"oslo": key, "lima": key_of("lima")}
    assert Approvals(Path("oslo")).get(sha_of(STUDY.encode())) is not None


# --- keys that people compare -----------------------------------------------------------------------------------------


def test_a_site_tells_its_own_key_and_pins_the_others(here):
    pin = ["site", "pin", "--folder", "oslo"]
    said = silograph(*pin).output
    assert f"The key of this site, oslo:\n  {shown_fingerprint(key_of('oslo'))}" in said
    assert "lima: NOT pinned\nkyoto: NOT pinned" in said
    shown = shown_fingerprint(key_of("lima"))
    silograph(*pin, "lima", shown.lower(), says=f"Pinned lima: {shown} Not pinned yet: kyoto.")
    silograph(*pin, "kyoto", "ab" * 32, says="The keys of all other sites are pinned.")
    said = silograph(*pin).output
    assert f"  {shown}\n" in said
    assert "NOT pinned" not in said
    told = json.loads(silograph(*pin, "--json").stdout)
    assert told == {"site": "oslo", "keys": {"oslo": key_of("oslo"), "lima": key_of("lima"), "kyoto": "ab" * 32}}
    log = [(entry["what"], entry["detail"]) for entry in entries(here / "oslo" / "audit.jsonl")]
    assert log[0] == ("pinned", f"the key of lima: none → {key_of('lima')}")
    silograph("site", "log", "--verify", "--folder", "oslo", says="2 entries, unbroken")


def test_another_key_needs_a_word_more(here):
    pin = ["site", "pin", "--folder", "oslo", "lima"]
    silograph(*pin, "ab" * 32)
    silograph(*pin, "cd" * 32, code=2, says="Another key of the site 'lima' is pinned: AB:AB:AB")
    assert Pins(here / "oslo").get("lima") == "ab" * 32
    silograph(*pin, "cd" * 32, "--replace", says="Pinned lima: CD:CD:CD")
    silograph(*pin, "--remove", says="No key of lima is pinned any more")
    silograph(*pin, "--remove", code=2, says="there is nothing to remove")
    assert [entry["what"] for entry in entries(here / "oslo" / "audit.jsonl")] == ["pinned", "pinned", "unpinned"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["quito", "ab" * 32], "This site was not invited together with 'quito', but with oslo, lima, kyoto."),
        (["../lima", "ab" * 32, "--new"], "site name: expected at most 40 of a-z, 0-9 and '-'"),
        (["oslo", "ab" * 32, "--replace"], "oslo is this site itself"),
        (["lima", "AB:CD"], "expected 64 hexadecimal digits, such as AB:CD:…, got 'AB:CD'"),
        (["lima"], "lima: expected the fingerprint of its key too, or --remove"),
    ],
)
def test_what_cannot_be_pinned_is_refused_and_nothing_changes(here, arguments, says):
    silograph("site", "pin", *arguments, "--folder", "oslo", code=2, says=says)
    assert not (here / "oslo" / "pins.json").exists()
    assert not (here / "oslo" / "audit.jsonl").exists()


# --- writing a study --------------------------------------------------------------------------------------------------


def sign_all() -> dict[str, str]:
    silograph("site", "request", "brain-study/brain-study.invite", "--site", "kyoto")
    for site in ("lima", "kyoto"):
        silograph("federation", "approve", f"{site}/{site}.request.zip")
    return {site: key_of(site) for site in ("oslo", "lima", "kyoto")}


def test_a_study_names_the_keys_of_its_sites_and_masks_their_sum(here):
    keys = sign_all()
    said = silograph("federation", "study").output
    assert "one masked sum over oslo, lima, kyoto" in said
    assert all(f"  {site:<5}  {shown_fingerprint(key)}\n" in said for site, key in keys.items())
    study, nodes = read_study(Path("brain-study/study.toml"))
    assert (study.name, study.sites, study.keys, nodes) == ("brain-study", tuple(keys), keys, NODES)
    assert (study.settings.method, study.settings.privacy.sums, study.share_graphs) == ("oneshot", "masked", False)
    before = Path("brain-study/study.toml").read_bytes()
    silograph("federation", "study", code=1, says="study.toml: exists already")
    silograph("federation", "approve", "oslo/oslo.request.zip")  # renewed: the same key
    silograph("federation", "study", "--force")
    assert Path("brain-study/study.toml").read_bytes() == before
    silograph("federation", "study", "--force", "--open", says="Sums are open to the coordinator (as you asked).")
    study, _ = read_study(Path("brain-study/study.toml"))
    assert (study.settings.method, study.settings.privacy.sums, study.keys) == ("exact", "open", {})


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 1, "lima, kyoto: not approved yet, so that their keys are not known"),
        (["--sites", "oslo", "quito"], 2, "quito are not of this federation, whose sites are oslo, lima, kyoto"),
        (["--sites", "oslo"], 2, "expected at least two sites, got 1"),
        (["--sites", "oslo", "lima", "--out", "elsewhere.toml"], 1, "elsewhere.toml: a study lies beside the list"),
        (["--sites", "oslo", "lima", "--name", "a/b"], 2, "name: expected a letter or digit"),
    ],
)
def test_a_study_that_cannot_be_written_is_refused(here, arguments, code, says):
    before = everything_in(here)
    silograph("federation", "study", *arguments, code=code, says=says)
    assert everything_in(here) == before


def test_a_study_of_two_is_open_and_says_why(here):
    options = ["--sites", "oslo,lima", "--name", "brains", "--out", "brain-study/two.toml"]
    silograph("federation", "study", *options, says="of two, each would know the other's part")
    study, _ = read_study(Path("brain-study/two.toml"))
    assert (study.name, study.sites, study.settings.privacy.sums) == ("brains", ("oslo", "lima"), "open")


# --- starting ---------------------------------------------------------------------------------------------------------


def test_who_has_not_joined_cannot_start(here):
    silograph("site", "start", "--folder", "lima", code=2, says="lima: has not joined yet")


@pytest.mark.parametrize(("group", "folder"), [("federation", "brain-study"), ("site", "oslo")])
def test_the_systemd_unit_starts_by_a_command_that_exists(site, group, folder):
    unit = silograph(group, "start", "--systemd", "--folder", folder).output
    command = re.search(r"^ExecStart=(.*)$", unit, flags=re.MULTILINE)
    assert command is not None
    python, *words = shlex.split(command[1])
    assert Path(python).exists()
    assert words[:4] == ["-m", "silograph", group, "start"]
    silograph(*words[2:], "--systemd", says="[Service]")


# --- approving a study ------------------------------------------------------------------------------------------------


def test_a_study_is_approved_listed_and_revoked(site):
    Path("study.toml").write_text(STUDY)
    approve = ["site", "approve", "--folder", "oslo"]
    silograph(*approve, says="No study waits for approval, and none is approved.")
    said = silograph(*approve, "study.toml", answer="n\n", says="Not approved.").output
    sha = re.search(r"SHA-256 ([0-9a-f]{64})", said)
    assert sha is not None
    assert Approvals(site).get(sha[1]) is None
    silograph(*approve, "study.toml", answer="y\n", says="Approved.")
    assert Approvals(site).get(sha[1]) is not None
    listed = silograph(*approve).output
    assert listed.startswith(f"approved  {sha[1]}  'brains' by ")
    assert "0 rounds answered" in listed
    silograph(*approve, sha[1][:12], "--revoke", code=2, says="a whole SHA-256")
    silograph(*approve, sha[1], "--revoke", says=f"Revoked {sha[1]}.")
    assert Approvals(site).get(sha[1]) is None
    silograph(*approve, "study.toml", "--revoke", code=2, says="there is nothing to revoke")
    assert [entry["what"] for entry in entries(site / "audit.jsonl")] == ["approved", "revoked"]
    silograph("site", "log", "--verify", "--folder", "oslo", says="2 entries, unbroken.")


def test_a_study_that_waits_is_approved_by_its_whole_hash(site):
    study = sha_of(STUDY.encode())
    Approvals(site).note_pending(study, STUDY, asked_by="coord.example.org")
    listed = silograph("site", "approve", "--folder", "oslo").output
    assert re.search(
        rf"waits     {study}  'brains', asked by 'coord.example.org' at \d{{4}}-\d\d-\d\d \d\d:\d\d UTC\n", listed
    )
    path = re.search(r"read it: (\S+)", listed)
    assert path is not None
    assert Path(path[1]).read_text() == STUDY
    assert f"silograph site approve {study} --folder oslo\n" in listed
    silograph("site", "approve", study[:12], "--yes", "--folder", "oslo", code=2, says="Copy all of it")
    silograph("site", "approve", study, "--yes", "--folder", "oslo", says="Approved.")
    assert "approved " in silograph("site", "approve", "--folder", "oslo").output
    renewed = "was approved for this version; 2 rounds were answered, counted from 0 again if you approve."
    for _ in range(2):
        Approvals(site).count_round(study)
    silograph("site", "approve", study, "--yes", "--folder", "oslo", says=renewed)
    assert Approvals(site).rounds_used(study) == 0


@pytest.mark.parametrize(
    ("study", "says"),
    [
        ("abc", "expected a file, or a whole SHA-256"),
        ("nowhere.toml", "nowhere.toml"),
        ("0123456789abcdef", "expected a file, or a whole SHA-256"),
        ("0123456789abcdef" * 4, "neither waits nor was approved"),
        ("bad.toml", "bad.toml"),
    ],
)
def test_what_is_no_study_is_not_approved(site, study, says):
    Path("bad.toml").write_text("name = 3\n")
    silograph("site", "approve", study, "--yes", "--folder", "oslo", code=2, says=says)
    assert not (site / "approvals.json").exists()
    assert not (site / "audit.jsonl").exists()


# --- the log ----------------------------------------------------------------------------------------------------------


def fill_log(site: Path, n: int = 5) -> Path:
    log = AuditLog(site / "audit.jsonl")
    for number in range(n):
        entry = {"what": "answered", "from": "coord.example.org", "kind": "round", "round": number}
        log.append(entry | {"left": "d (28), f (1)", "bytes_sent": 1234})
    return site / "audit.jsonl"


def test_the_log_is_shown_as_a_table_and_as_json(site):
    path = fill_log(site)
    table = silograph("site", "log", "--folder", "oslo").output
    assert table.count("d (28), f (1)") == 5
    assert "1234" in table
    lines = silograph("site", "log", "--json", "--last", "2", "--folder", "oslo").output.splitlines()
    assert [json.loads(line) for line in lines] == list(entries(path, last=2))
    assert len(silograph("site", "log", "--json", "--last", "0", "--folder", "oslo").output.splitlines()) == 5
    silograph("site", "log", "--verify", "--folder", "oslo", says="5 entries, unbroken.")


def test_a_site_that_was_never_asked_has_an_empty_log(site):
    silograph("site", "log", "--folder", "oslo")
    assert silograph("site", "log", "--json", "--folder", "oslo").output == ""
    silograph("site", "log", "--verify", "--folder", "oslo", says="0 entries, unbroken.")


@pytest.mark.parametrize(
    "alter",
    [
        lambda lines: [lines[0], lines[1].replace(b"1234", b"1235"), *lines[2:]],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: [*lines[:2], lines[1], *lines[2:]],
        lambda lines: lines[:-2],
        lambda lines: lines[1:],
        lambda lines: [],
    ],
    ids=["altered", "removed", "exchanged", "doubled", "cut at the end", "cut at the beginning", "emptied"],
)
def test_a_log_that_was_altered_is_found_out(site, alter):
    path = fill_log(site)
    path.write_bytes(b"".join(alter(path.read_bytes().splitlines(keepends=True))))
    said = silograph("site", "log", "--verify", "--folder", "oslo", code=1).output
    assert "audit.jsonl" in said
    assert "unbroken" not in said


# --- which folder is meant --------------------------------------------------------------------------------------------


def test_the_folder_is_the_one_named_or_this_one_or_the_only_one_below(site, monkeypatch):
    root = Path.cwd()
    silograph("site", "approve", code=2, says="Found several sites' folders here (elsewhere, lima, oslo). Name one")
    for other in ("lima", "elsewhere"):
        shutil.rmtree(other)
    silograph("site", "approve", says="No study waits")  # the only one below
    monkeypatch.chdir(site)
    silograph("site", "approve", says="No study waits")  # this one
    monkeypatch.chdir(root / "brain-study")
    silograph("site", "approve", code=2, says="Found no site's folder here")
    silograph("site", "approve", "--folder", "../oslo", says="No study waits")
    silograph("site", "approve", "--folder", ".", code=2, says=".: is no site's folder")


def test_the_federations_folder_is_found_alike(here, monkeypatch):
    unit = ["federation", "start", "--systemd"]
    Path("second").mkdir()
    shutil.copy("brain-study/federation.json", "second/federation.json")  # all that a lead's machine has, but its key
    silograph(*unit, code=2, says="Found several federations' folders here (brain-study, second). Name one")
    shutil.rmtree("second")
    silograph(*unit, says='brain-study"')
    monkeypatch.chdir(here / "brain-study")
    silograph(*unit, says='brain-study"')
    monkeypatch.chdir(here / "oslo")
    silograph(*unit, code=2, says="Found no federation's folder here")
    silograph(*unit, "--folder", "../lima", code=2, says="../lima: is no federation's folder")


# --- what a run refuses before it asks any server ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "Give a study file and --out FOLDER, or --resume FOLDER"),
        (["study.toml"], 2, "Give a study file and --out FOLDER"),
        (["--out", "run"], 2, "Give a study file and --out FOLDER"),
        (["study.toml", "--resume", "run"], 2, "Give neither"),
        (["--resume", "run", "--force"], 2, "Give neither"),
        (["--resume", "run"], 1, "run: no unfinished run is kept here"),
        (["nowhere.toml", "--out", "run"], 2, "nowhere.toml"),
        (["bad.toml", "--out", "run"], 2, "degre"),
        (["strangers.toml", "--out", "run"], 2, "quito are not of this federation"),
        (["nodes.toml", "--out", "run"], 1, "its nodes are not those to which the sites were invited"),
        (["study.toml", "--out", "oslo"], 1, "oslo: exists already"),
        (["study.toml", "--out", "oslo", "--force"], 1, "oslo: holds other things than a run"),
        (["study.toml", "--out", "oslo.csv"], 1, "oslo.csv: expected a folder or a new name"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_run_that_cannot_be_is_refused_before_anything_is_written(here, arguments, code, says):
    shutil.copy("regions.txt", "nodes.txt")
    Path("study.toml").write_text(STUDY)
    Path("bad.toml").write_text(STUDY + "degre = 3\n")
    Path("strangers.toml").write_text('sites = ["oslo", "quito"]\n' + STUDY)
    Path("nodes.toml").write_text(STUDY.replace('"nodes.txt"', '["a", "b", "c"]'))
    before = everything_in(here)
    silograph("federation", "run", *arguments, "--folder", "brain-study", code=code, says=says)
    assert everything_in(here) == before
    assert not (here / "run").exists()


def test_a_run_of_this_machine_is_not_resumed_by_a_federation(here):
    Path("run/checkpoint").mkdir(parents=True)
    Path("run/checkpoint/request.json").write_text('{"format": 1}')
    resume = ["federation", "run", "--resume", "run"]
    silograph(*resume, code=1, says="run: is a run on this machine alone. Go on with: silograph learn --resume run")


def test_a_status_without_a_server_tells_so_and_what_is_known(here):
    port = read_invitation(Path("brain-study/federation.json")).port
    place = f"The server at localhost:{port} does not answer: nothing listens at port {port} of localhost."
    why = f"{place} Start it there: silograph "
    data = json.loads(silograph("federation", "status", "--json", code=1).stdout)
    about = {"address": f"localhost:{port}", "answers": False, "why": f"{why}federation start.", "version": None}
    assert data["server"] == about
    told = [(one["site"], one["joined"], one["connected"], one["last_seen"]) for one in data["sites"]]
    assert told == [("oslo", True, None, None), ("lima", False, None, None), ("kyoto", False, None, None)]
    assert {one["site"]: one["key"] for one in data["sites"]} == {"oslo": key_of("oslo"), "lima": None, "kyoto": None}
    assert data["runs"] == []
    said = silograph("federation", "status", "--quick", code=1).output
    assert shown_fingerprint(key_of("oslo")) in said


def test_on_the_leads_machine_alone_nobody_knows_who_has_joined(here, tmp_path):
    laptop = tmp_path / "laptop"
    shutil.copytree("brain-study/lead", laptop / "lead")
    shutil.copy("brain-study/federation.json", laptop)
    data = json.loads(silograph("federation", "status", "--json", "--folder", laptop, code=1).stdout)
    assert {site["joined"] for site in data["sites"]} == {None}
    silograph("federation", "renew", "oslo", "--folder", laptop, code=1, says="the root key is not here")


def test_a_demo_does_not_replace_other_things(here):
    silograph("federation", "demo", "--out", "oslo", code=1, says="oslo: exists already")
    silograph("federation", "demo", "--out", "oslo", "--force", code=1, says="so --force leaves it alone")
    silograph("federation", "demo", "--sites", "1", code=2)


WITHOUT_USERS_AND_LOCKS = """
import sys
sys.modules["fcntl"] = sys.modules["pwd"] = None
from silograph.cli.app import app
app(sys.argv[1:])
"""


def test_where_the_system_knows_neither_users_nor_locks_commands_work_until_they_need_a_lock(here, site):
    """As on Windows: all can be imported, and the first thing that needs a lock says what to do."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WITHOUT_USERS_AND_LOCKS, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LOGNAME": "ada"})

    (here / "study.toml").write_text(STUDY)
    assert "site" in run("--help").stdout
    assert "No study waits" in run("site", "approve", "--folder", str(site)).stdout
    refused = run("site", "approve", "study.toml", "--yes", "--folder", str(site))
    assert (refused.returncode, refused.stdout.count("Approved.")) == (1, 0)
    assert "this system cannot lock files (no fcntl). Use WSL or a container." in " ".join(refused.stderr.split())
