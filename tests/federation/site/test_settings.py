"""A site's settings: written once to teach, read with care."""

import tempfile
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph.errors import OutputError, ParameterError
from silograph.federation.site.audit import AuditLog, entries
from silograph.federation.site.settings import SECTIONS, SiteSettings, read_site, write_site
from silograph.federation.site.settings_log import note_settings
from silograph.methods.common.registry import built_in

OSLO = SiteSettings(name="oslo", federation="brains", server="coordinator.example.org", data=Path("signals.csv"))
LEAST = 'name = "oslo"\nfederation = "brains"\nserver = "coordinator.example.org"\ndata = "signals.csv"\n'
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)  # all but lone surrogates
counts = st.integers(0, 10**9)


@given(
    st.builds(
        SiteSettings,
        name=texts,
        federation=texts,
        server=texts,
        data=texts.map(Path) | st.lists(texts.map(Path), min_size=1, max_size=3).map(tuple),
        drop=st.lists(texts | st.just(""), max_size=3).map(tuple),
        key=st.none() | texts,
        header=st.none() | st.booleans(),
        min_samples=st.none() | counts,
        person=st.none() | texts,
        epsilon_total=st.none() | st.floats(1e-300, 1e300),
        delta_total=st.floats(1e-300, 0.999),
        sums_total=st.none() | counts,
        min_tables=counts.map(lambda count: count + 1),
        min_sites=counts.map(lambda count: count + 2),
        max_silos=counts.map(lambda count: count + 2),
        max_rounds=counts,
        max_rounds_table=counts,
        max_local_steps=counts,
        methods=st.lists(st.sampled_from(built_in()), max_size=9).map(tuple),
        report=st.booleans(),
        share_graph=st.booleans(),
        approve_all=st.booleans(),
    )
)
def test_settings_written_are_the_settings_read(settings):
    with tempfile.TemporaryDirectory() as folder:
        write_site(Path(folder), settings)
        assert read_site(Path(folder)) == settings


@pytest.mark.parametrize(
    "text", ['"', "\\", "a\nb", "\r\n", "\x00\x1f\x7f\x80", "'''", '"""', "{name}", "# x", "𝄞\u2028é"]
)
def test_characters_that_toml_treats_specially_come_back(text, tmp_path):
    settings = SiteSettings(name=text, federation=text, server=text, data=Path(text), drop=(text,), key=text)
    write_site(tmp_path, settings)
    assert read_site(tmp_path) == settings


def test_every_setting_is_written_with_a_line_that_explains_it(tmp_path):
    lines = write_site(tmp_path / "new" / "oslo", OSLO).read_text().splitlines()
    limits = lines[lines.index("[limits]") + 1 :]
    given = [line.split(" = ")[0].removeprefix("# ") for line in limits if " = " in line]
    assert given == [*SECTIONS["limits"], *SECTIONS["notify"]]
    for before, line in pairwise(["", *(line for line in limits if line and line != "[notify]")]):
        assert line.startswith("#") or before.startswith("#"), f"{line} has no explanation"
    assert {"# min_samples = 100", "# epsilon_total = 1.0", "# sums_total = 1"} <= set(limits)
    assert '# key = "signals"' in lines
    assert read_site(tmp_path / "new" / "oslo") == OSLO


def test_the_hints_in_comments_are_toml_once_the_mark_is_taken_away(tmp_path):
    text = write_site(tmp_path, OSLO).read_text()
    found = tomllib.loads(text.replace("# key", "key").replace("# header", "header").replace("# min_s", "min_s"))
    assert found["table"] == {"drop": [], "key": "signals", "header": True}
    assert found["limits"]["min_samples"] == 100


def test_what_is_left_out_has_its_default_and_the_defaults_protect(tmp_path):
    (tmp_path / "site.toml").write_text(LEAST)
    assert read_site(tmp_path) == OSLO
    assert (OSLO.least_samples(8), OSLO.least_samples(300)) == (20, 300)
    assert (OSLO.min_sites, OSLO.max_rounds, OSLO.max_rounds_table, OSLO.approve_all) == (2, 1000, 10_000, False)
    assert OSLO.methods == built_in()


def test_a_file_of_the_windows_editor_is_read_too(tmp_path):
    (tmp_path / "site.toml").write_bytes(b"\xef\xbb\xbf" + LEAST.replace("\n", "\r\n").encode())
    assert read_site(tmp_path) == OSLO


def test_settings_are_written_once(tmp_path):
    path = write_site(tmp_path, OSLO)
    path.write_text(LEAST)
    with pytest.raises(OutputError, match=r"site\.toml: is there already\. Edit it by hand"):
        write_site(tmp_path, OSLO)
    assert path.read_text() == LEAST


def test_data_lie_in_the_sites_folder_or_where_a_whole_path_says(tmp_path):
    assert OSLO.data_in(tmp_path) == [tmp_path / "signals.csv"]
    elsewhere = replace(OSLO, data=Path("/data/signals.csv"))
    assert elsewhere.data_in(tmp_path) == [Path("/data/signals.csv")]
    both = replace(OSLO, data=(Path("signals.csv"), Path("/data/more")))
    assert both.data_in(tmp_path) == [tmp_path / "signals.csv", Path("/data/more")]


def test_a_file_is_one_table_and_a_folder_a_pattern_or_a_list_are_several_however_many_they_hold(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "odd[1].csv").write_text("a,b")
    several = {Path("signals.csv"): False, Path("odd[1].csv"): False, Path("folder"): True, Path("*.csv"): True}
    assert {data: replace(OSLO, data=data).has_several(tmp_path) for data in several} == several
    assert replace(OSLO, data=(Path("signals.csv"),)).has_several(tmp_path)


WRONG = {
    "min_sample = 5": r"'min_sample': no such key",
    "min_samples = 5": r"'min_samples': no such key\. It belongs below the line \[limits\]",
    "[limits]\nmin_sample = 5": r"\[limits\] 'min_sample': no such key\. Did you mean 'min_samples'",
    "[limits]\nkey = 'x'": r"\[limits\] 'key': no such key\. It belongs below the line \[table\]",
    "[limits]\nname = 'x'": r"\[limits\] 'name': no such key\. It belongs at the top of the file",
    "[limits]\nx = 5": r"\[limits\] 'x': no such key\. Known are min_samples, min_new_samples",
    "[limit]\nmin_samples = 5": r"'limit': no such key\. Did you mean 'limits'",
    "limits = 5": r"limits: expected a section, got 5\. Write \[limits\]",
    "[[table]]\nkey = 'x'": r"table: expected a section",
    "[limits]\nmin_samples = -1": r"min_samples: expected a whole number ≥ 0, got -1\. Write one",
    "[limits]\nepsilon_total = 0": r"epsilon_total: expected .* > 0",
    "[limits]\ndelta_total = 1": r"delta_total: expected a number between 0 and 1, got 1\.0\. Write 1e-5",
    "[limits]\nsums_total = -1": r"sums_total: expected a whole number ≥ 0, got -1",
    "[limits]\nmin_sites = 1": r"min_sites: expected a whole number ≥ 2, got 1\. Write one",
    "[limits]\nmin_samples = 2.5": r"min_samples: expected a whole number, got 2\.5\. Write one",
    "[limits]\nmax_rounds = '5'": r"max_rounds: expected a whole number, got '5'",
    "[limits]\nmax_rounds = true": r"max_rounds: expected a whole number, got true",
    "[limits]\nreport = 1": r"report: expected true or false, got 1",
    "[limits]\nshare_graph = 'no'": r"share_graph: expected true or false, got 'no'\. Write .* without quotes",
    "[limits]\napprove_all = 'false'": r"approve_all: expected true or false",
    "[limits]\nmethods = 'exact'": r"methods: expected a list, got 'exact'\. Write a list: \[",
    "[limits]\nmethods = ['exakt']": r"methods, entry 1: expected one of exact, .*, got 'exakt'\. Did you mean 'exact'",
    "[limits]\nmethods = [1]": r"methods, entry 1: expected text, got 1",
    "[limits]\nmethods = [['exact']]": r"methods, entry 1: expected .*, got a list of 1",
    "[table]\ndrop = 'age'": r"drop: expected a list, got 'age'",
    "[table]\ndrop = [3]": r"drop, entry 1: expected text, got 3",
    "[table]\nkey = 3": r"key: expected text, got 3",
    "[table]\nkey = ''": r"key: expected text, got ''",
    "[table]\nheader = 'yes'": r"header: expected true or false, got 'yes'",
    "[table": r"expected TOML, got an error",
    "a = 1\na = 2": r"expected TOML, got an error",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_file_and_key_and_what_to_write(text, tmp_path):
    (tmp_path / "site.toml").write_text(LEAST + text)
    with pytest.raises(ParameterError, match=WRONG[text]) as refusal:
        read_site(tmp_path)
    assert str(refusal.value).startswith(str(tmp_path / "site.toml"))


@pytest.mark.parametrize("name", ["name", "federation", "server", "data"])
def test_what_must_be_there_and_is_not_is_told(name, tmp_path):
    kept = [line for line in LEAST.splitlines(keepends=True) if not line.startswith(name)]
    (tmp_path / "site.toml").write_text("".join(kept))
    with pytest.raises(ParameterError, match=rf"site\.toml, {name}: is missing\. Write {name} ="):
        read_site(tmp_path)
    for wrong in ("''", "3", "[]"):
        (tmp_path / "site.toml").write_text("".join(kept) + f"{name} = {wrong}")
        with pytest.raises(ParameterError, match=rf"site\.toml, {name}: expected text"):
            read_site(tmp_path)


def test_a_folder_without_settings_and_a_path_of_windows_are_told_what_to_do(tmp_path):
    with pytest.raises(ParameterError, match=r"site\.toml: cannot be read .*Name the folder of a site"):
        read_site(tmp_path)
    (tmp_path / "site.toml").write_text(LEAST.replace("signals.csv", r"C:\data"))
    with pytest.raises(ParameterError, match=r"a path with \\ in single quotes"):
        read_site(tmp_path)
    (tmp_path / "site.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ParameterError, match="line 1: expected UTF-8"):
        read_site(tmp_path)


def test_a_name_that_no_text_file_can_hold_is_told_before_it_is_written():
    with pytest.raises(ParameterError, match=r"data: .* no text file can hold"):
        SiteSettings(name="a", federation="b", server="c", data=Path("caf\udce9.csv"))


def test_a_change_is_logged_by_its_own_key_alone(tmp_path):
    """All keys must have room in the entry before: of one that is cut off, every change would be told anew."""
    log = AuditLog(tmp_path / "audit.jsonl")
    for settings in (OSLO, replace(OSLO, sums_total=3), replace(OSLO, sums_total=3, approve_all=True)):
        note_settings(log, settings)
    told = [entry["detail"] for entry in entries(tmp_path / "audit.jsonl")][1:]
    assert told == ["site.toml changed: sums_total = 3", "site.toml changed: approve_all = true"]
