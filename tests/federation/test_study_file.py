import hashlib
import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph.errors import PairsError, ParameterError
from silograph.federation.names import check_site_name
from silograph.federation.study_file import LARGEST_STUDY, Policy, pairs_of, parse_study, read_study
from silograph.federation.study_template import template
from silograph.methods.common.settings import StudySettings
from silograph.privacy.settings import Privacy

HEAD = 'name = "brain"\nnodes = ["a", "b", "c"]\n'
SITE_NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,39}", fullmatch=True).filter(lambda name: name != "server")


def parsed(text: str):
    return parse_study(text.encode(), source="study.toml")


def written(folder: Path, nodes: str, text: str = "", name: str = "nodes.txt") -> Path:
    (folder / name).write_bytes(nodes.encode())
    (folder / "study.toml").write_text(f'name = "brain"\nnodes = "{name}"\n{text}')
    return folder / "study.toml"


def test_every_key_arrives_where_it_belongs():
    study = parsed(
        HEAD
        + 'sites = ["oslo", "lima"]\nstandardize = true\nshare_graphs = false\nforbid = [["a", "b"]]\n'
        + '[learn]\nmethod = "exact"\ndegree = 5\ncoupling = 0.5\n'
        + '[policy]\nquorum = 2\ntimeout = 60\non_missing = "continue"\n'
    )
    assert (study.name, study.nodes, study.nodes_file) == ("brain", ("a", "b", "c"), None)
    assert study.sites == ("oslo", "lima")
    assert study.standardize
    assert not study.share_graphs
    assert (study.allow, study.forbid) == (None, (("a", "b"),))
    assert study.settings == StudySettings(method="exact", degree=5.0, coupling=0.5)
    assert isinstance(study.settings.degree, float)
    assert study.policy == Policy(quorum=2, timeout=60.0, on_missing="continue")


def test_what_is_left_out_has_a_default():
    study = parsed(HEAD)
    assert (study.sites, study.standardize, study.share_graphs, study.forbid) == (None, False, True, None)
    assert study.settings == StudySettings()
    assert study.policy == Policy(quorum=None, timeout=600.0, on_missing="wait")


def test_the_hash_is_that_of_sha256sum(tmp_path):
    path = tmp_path / "study.toml"
    path.write_bytes(b"\xef\xbb\xbf" + HEAD.replace("\n", "\r\n").encode())
    study, _ = read_study(path)
    printed = subprocess.run(["sha256sum", str(path)], capture_output=True, text=True, check=True).stdout
    assert study.sha256 == printed.split()[0] == hashlib.sha256(study.text).hexdigest()
    assert study.text == path.read_bytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "study.toml: expected a key name, got none"),
        ('name = "x"', "expected a key nodes, got none"),
        (HEAD + "x = \n", "study.toml: expected TOML, got an error: Invalid value (at line 3"),
        (HEAD + "a" + ".a" * 20 + " = 1", "got one of many parts"),
        (HEAD + "x = " + "[" * 5000, "lists in lists"),
        (HEAD + "[learn]\nrounds = " + "9" * 5000, "got thousands"),
        (HEAD + "standardise = true", "study.toml, 'standardise': no such key. Did you mean 'standardize'?"),
        (HEAD + "[learn]\ndegre = 5", r"study.toml, [learn] 'degre': no such key. Did you mean 'degree'?"),
        (HEAD + "[policy]\nquorom = 5", r"study.toml, [policy] 'quorom': no such key. Did you mean 'quorum'?"),
        (HEAD + '[policy]\nsites = ["a"]', r"[policy] 'sites': no such key. It belongs above the first [table]."),
        (HEAD + "degree = 5", "study.toml, 'degree': no such key. It belongs below [learn]."),
        (HEAD + "learn = 5", "study.toml, [learn] expected a table of settings, got 5"),
        (HEAD + "[[policy]]\nquorum = 2", "study.toml, [policy] expected a table of settings, got a list of 1"),
        (HEAD + "standardize = 1", "study.toml, standardize: expected true or false, got 1"),
        (HEAD + 'transform = "rank"', 'study.toml, transform: expected "none" or "ranks", got'),
        (HEAD + 'transform = "ranks"\nscale = [1, 2]', "standardize and transform give all tables one unit"),
        (
            HEAD + 'transform = "ranks"\nshare_graphs = false\n[learn]\nmethod = "oneshot"\npull = 1\n'
            "[privacy]\nepsilon = 1\ndelta = 1e-5\nmin_samples = 20",
            "changes the ranks of all others",
        ),
        (HEAD + 'share_graphs = "no"', "study.toml, share_graphs: expected true or false, got 'no'"),
        (HEAD + "[learn]\ndegree = true", "[learn] degree: expected a finite number, got true"),
        (HEAD + '[learn]\ndegree = "5"', "[learn] degree: expected a finite number, got '5'"),
        (HEAD + "[learn]\ndegree = inf", "[learn] degree: expected a finite number, got inf"),
        (
            HEAD + "[learn]\ndegree = 0x" + "f" * 9999,
            "[learn] degree: expected a finite number, got a number too large",
        ),
        (HEAD + "[learn]\ndegree = -1", "[learn] degree: expected a finite number > 0, got -1.0"),
        (HEAD + "[learn]\nrounds = 5.0", "[learn] rounds: expected a whole number, got 5.0"),
        (HEAD + "[learn]\nrounds = 2020-01-01", "[learn] rounds: expected a whole number, got 2020-01-01"),
        (HEAD + '[learn]\nmethod = "fedav"', "Did you mean 'fedavg'?"),
        (HEAD + "[learn]\npull = 1", "study.toml, [learn] pull: the method 'exact'"),
        (
            HEAD + '[learn]\nmethod = "algorithm1"\nstep = "lip"',
            '[learn] step: expected a finite number or "lipschitz"',
        ),
        (HEAD + "[policy]\nquorum = 1", "[policy] quorum: expected a whole number ≥ 2, got 1"),
        (HEAD + 'sites = ["oslo", "lima"]\n[policy]\nquorum = 3', "[policy] quorum: expected at most the number of"),
        (HEAD + "[policy]\ntimeout = 0", "[policy] timeout: expected a finite number > 0, got 0.0"),
        (HEAD + "[policy]\ntimeout = 1e12", "[policy] timeout: expected at most"),
        (HEAD + '[policy]\non_missing = "go"', '[policy] on_missing: expected "wait" or "continue" or "stop"'),
        (HEAD + 'sites = "oslo"', "study.toml, sites: expected a list of names"),
        (HEAD + "sites = []", "study.toml, sites: expected names, 1 at least, got 0"),
        (HEAD + 'sites = ["Oslo"]', "study.toml, sites: site name: expected"),
        (HEAD + 'sites = ["server"]', "study.toml, sites: A site cannot be called 'server'"),
        (HEAD + 'sites = ["oslo", "oslo"]', "study.toml, sites, entry 2: expected each name once, got 'oslo' again"),
        ('name = "x"\nnodes = ["a", "a"]', "study.toml, nodes, entry 2: expected each name once, got 'a' again"),
        ('name = "x"\nnodes = ["a"]', "study.toml, nodes: expected names, 2 at least, got 1"),
        ('name = "x"\nnodes = ["a", " "]', "study.toml, nodes, entry 2: expected a name, got an empty one"),
        ('name = "x"\nnodes = ["a", 3]', "study.toml, nodes, entry 2: expected a name in quotes, got 3"),
        ('name = "x"\nnodes = ["a", "b\\u001b[2J"]', r"nodes, entry 2: expected a name without tabs, .*'b\x1b[2J'"),
        ('name = "x"\nnodes = ["a", "b\\u202e"]', r"nodes, entry 2: expected a name without tabs, .*'b\u202e'"),
        ('name = "x"\nnodes = "../nodes.txt"', "study.toml, nodes: expected a list of names, or the name of a file"),
        ('name = "../x"\nnodes = ["a", "b"]', "study.toml, name: expected a letter or digit"),
        (HEAD + 'allow = [["a", "b"]]\nforbid = [["a", "c"]]', "allow and forbid contradict each other"),
        (HEAD + "forbid = []", "study.toml, forbid: expected at least one pair"),
        (HEAD + 'forbid = [["a"]]', "study.toml, forbid, pair 1: expected two names"),
        (HEAD + 'forbid = [["a", "b"], ["c", "c"]]', "study.toml, forbid, pair 2: a node is no pair with itself"),
    ],
    ids=lambda value: value[-30:],
)
def test_an_error_names_the_file_the_key_and_what_was_expected(text, message):
    pattern = re.escape(message).replace(r"\.\*", ".*") if ".*" in message else re.escape(message)
    with pytest.raises(ParameterError, match=pattern):
        parsed(text)


def test_bytes_that_are_no_text_and_too_many_of_them_are_refused():
    with pytest.raises(ParameterError, match=r"study.toml, line 2: expected UTF-8"):
        parse_study(b"#\n\xff", source="study.toml")
    with pytest.raises(ParameterError, match="at most 1 MB"):
        parse_study(b"#" * (LARGEST_STUDY + 1), source="study.toml")


@pytest.mark.parametrize("part", ["a", '""', r'"\""', "''", '"#"'])
@pytest.mark.parametrize("before", ["", "[", 'x = {y = """z"""", ', "x = '''z'''\n"])
def test_no_key_of_many_parts_reaches_the_parser_however_it_is_written(part, before):
    text = before + ".".join([part] * 20_000) + " = 1"
    with pytest.raises(ParameterError, match="one of many parts"):
        parsed(text)


def test_points_in_names_and_comments_are_no_key_of_many_parts():
    study = parsed(f'name = "v1.0"\nnodes = ["{".".join("abcdefghijkl")}", \'b.1\']  # a.b.c.d.e.f.g.h.i.j.k.l = 1')
    assert study.nodes == ("a.b.c.d.e.f.g.h.i.j.k.l", "b.1")


SIGNS = ["[[", "]]", "[", "]", "{", "}", "=", ",", ".", '"', "'", '"""', "\\", "#", "\n", " ", "\x00", "\ufeff"]
VALUES = ["1", "-", "0x", "e9", "inf", "nan", "true", "1979-05-27", "a"]
WORDS = [HEAD, "name", "nodes", "sites", "standardize", "forbid", "[learn]", "[policy]"]
SET = ["degree = ", "rounds = ", "step = ", "method = ", "quorum = ", "timeout = ", "on_missing = "]
TOML_BITS = st.sampled_from([*SIGNS, *VALUES, *WORDS, *SET])


def refusal(data: bytes) -> str | None:
    try:
        parse_study(data, source="study.toml")
    except ParameterError as error:
        return str(error)
    return None


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_a_study_or_a_parameter_error(data):
    assert (refusal(data) or "study.toml").startswith("study.toml")


@settings(max_examples=300)
@given(st.lists(TOML_BITS, max_size=30).map("".join))
def test_any_shuffled_study_is_a_study_or_a_parameter_error(text):
    refused = refusal(text.encode()) or "study.toml"
    assert refused.startswith("study.toml")
    assert len(refused) < 1000


@given(
    field=st.sampled_from([field.name for field in fields(StudySettings)]),
    value=st.one_of(st.integers(), st.floats(), st.booleans(), st.sampled_from(["newton", "lipschitz", "exact", ""])),
)
def test_a_setting_is_taken_as_the_settings_themselves_take_it(field, value):
    shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
    try:
        study = parsed(f"{HEAD}[learn]\n{field} = {shown}")
    except ParameterError:
        return
    assert study.settings == StudySettings(**{field: value})
    assert type(getattr(study.settings, field)) in (type(value), float)


@given(
    sites=st.lists(SITE_NAMES, max_size=4, unique=True),
    name=st.from_regex(r"[a-z][a-z0-9 ._-]{0,20}[a-z]", fullmatch=True),
)
def test_the_template_is_a_study_of_the_sites_and_nodes_it_was_made_for(sites, name):
    study = parsed(template(name, sites, "nodes.csv"))
    assert (study.name, study.nodes_file) == (name, "nodes.csv")
    assert study.sites == (tuple(sites) or None)
    assert study.settings == StudySettings(method="exact", degree=5.0, coupling=0.5)
    assert (study.policy, study.keys) == (Policy(), {})


@given(sites=st.lists(SITE_NAMES, min_size=2, max_size=6, unique=True))
def test_the_template_is_masked_from_three_sites_with_keys_on(sites):
    keys = {site: f"{number:064x}" for number, site in enumerate(sites)}
    study = parsed(template("brains", sites, "nodes.txt", keys))
    assert study.sites == tuple(sites)
    if len(sites) < 3:
        assert study == parsed(template("brains", sites, "nodes.txt"))
        return
    assert study.keys == keys
    privacy = Privacy(sums="masked")
    assert study.settings == StudySettings(method="oneshot", degree=5.0, report=False, privacy=privacy)
    assert (study.share_graphs, study.policy) == (False, Policy(on_missing="wait"))


@pytest.mark.parametrize("n_sites", [2, 3])
def test_every_key_of_privacy_is_in_the_template_and_can_be_taken_as_it_stands(n_sites):
    sites = ["oslo", "lima", "kyoto"][:n_sites]
    text = template("brains", sites, "nodes.txt", {site: f"{ord(site[0]):064x}" for site in sites})
    names = [one.name for one in fields(Privacy)]
    section = text[text.index("[privacy]") : text.index("[policy]")]
    assert re.findall(r"^(?:# )?(\w+) = .*  # .", section, re.MULTILINE) == names
    used = re.sub(rf"^# (?=\[privacy\]|(?:{'|'.join(names[1:])}) = )", "", text, flags=re.MULTILINE)
    assert parsed(used).settings.privacy == Privacy(
        sums="masked" if n_sites == 3 else "open",
        epsilon=1.0,
        delta=1e-5,
        min_samples=1000,
        centres=(0.0, 0.0),
        scales=(1.0, 1.0),
    )


def test_two_sites_cannot_have_the_same_key():
    keys = "\n".join(f'{site} = "{"ab" * 32}"' for site in ("a", "b", "c"))
    with pytest.raises(ParameterError, match=r"\(without a key: d; not in sites: b, c\)"):
        parsed(HEAD + f'sites = ["a", "d"]\n[keys]\n{keys}')
    with pytest.raises(ParameterError, match=r"\[keys\]: expected another key of each site, got one twice"):
        parsed(HEAD + f'sites = ["a", "b", "c"]\n[keys]\n{keys}')


@settings(max_examples=200)
@given(name=st.text(max_size=8), nodes_file=st.text(st.characters(), max_size=8), site=st.text(max_size=8))
def test_a_template_of_any_words_is_a_study_or_a_parameter_error(name, nodes_file, site):
    try:
        study = parsed(template(name, [site], nodes_file))
    except ParameterError:
        return
    assert (study.name, study.nodes_file, study.sites) == (name, nodes_file, (site,))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("nodes.txt", "# regions\n\na\n  b \r\nc"),
        ("nodes.txt", "\ufeffa\nb\nc\n"),
        ("nodes.csv", "a,b,c\n1,2,3\n"),
        ("nodes.csv", "# made by hand\n,a,b,c\nrow,1,2,3\n"),
        ("nodes.CSV", 'a;"b";c;\n1,5;2;3;\n'),
        ("nodes.tsv", "\ta\tb\tc\nrow\t1\t2\t3\n"),
    ],
)
def test_nodes_come_from_a_list_or_from_the_first_row_of_a_table(tmp_path, file, text):
    study, nodes = read_study(written(tmp_path, text, name=file))
    assert nodes == ("a", "b", "c")
    assert (study.nodes, study.nodes_file) == (None, file)


def test_inline_nodes_need_no_file(tmp_path):
    (tmp_path / "study.toml").write_text(HEAD)
    assert read_study(tmp_path / "study.toml")[1] == ("a", "b", "c")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("nodes.txt", "", "nodes.txt: expected names, 2 at least, got 0"),
        ("nodes.txt", "# a\n\nb\n", "nodes.txt: expected names, 2 at least, got 1"),
        ("nodes.txt", "a\nb\na\n", "nodes.txt, line 3: expected each name once, got 'a' again"),
        ("nodes.txt", "a\tb\n", "nodes.txt, line 1: expected a name without tabs"),
        ("nodes.csv", "", "nodes.csv: expected names, 2 at least, got 0"),
        ("nodes.csv", "a,b,a\n", "nodes.csv, column 3: expected each name once"),
        ("nodes.csv", "a,,c\n", "nodes.csv, column 2: expected a name, got an empty one"),
        ("nodes.csv", "0.5,-1.5\n", "nodes.csv: expected names in the first row, got numbers"),
        ("nodes.csv", 'a,"b\nc"\n', "nodes.csv, column 2: expected a name without tabs, line breaks"),
    ],
)
def test_a_list_of_nodes_that_cannot_be_used_is_named(tmp_path, file, text, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        read_study(written(tmp_path, text, name=file))


def test_missing_and_unreadable_files_are_named(tmp_path):
    with pytest.raises(ParameterError, match=r"study.toml: cannot be read \(No such file"):
        read_study(tmp_path / "study.toml")
    path = written(tmp_path, "")
    (tmp_path / "nodes.txt").write_bytes(b"a\nb\xff\n")
    with pytest.raises(ParameterError, match=r"nodes.txt: expected UTF-8 text"):
        read_study(path)
    (tmp_path / "nodes.txt").unlink()
    with pytest.raises(ParameterError, match=r"nodes.txt: the list of nodes cannot be read \(No such file"):
        read_study(path)


def test_pairs_are_all_or_the_allowed_or_all_but_the_forbidden():
    assert pairs_of(parsed(HEAD), "abc").is_all
    forbidden = pairs_of(parsed(HEAD + 'forbid = [["c", "a"]]'), "abc")
    assert list(zip(forbidden.rows, forbidden.cols, strict=True)) == [(0, 1), (1, 2)]
    allowed = pairs_of(parsed(HEAD + 'allow = [["c", "a"], ["b", "c"]]'), "abc")
    assert list(zip(allowed.rows, allowed.cols, strict=True)) == [(0, 2), (1, 2)]
    with pytest.raises(PairsError, match="forbid, pair 1: expected the name of a node, got 'x'"):
        pairs_of(parsed(HEAD + 'forbid = [["x", "a"]]'), "abc")
    isolating = HEAD + 'allow = [["a", "b"]]\n[learn]\n'
    with pytest.raises(PairsError, match="no allowed pair touches 'c'"):
        pairs_of(parsed(isolating), "abc")
    assert pairs_of(parsed(isolating + "zeta = 0.5"), "abc").size == 1


def test_a_result_needs_all_sites_unless_the_policy_says_fewer():
    assert Policy().needed(5) == Policy(on_missing="stop").needed(5) == 5
    assert Policy(on_missing="continue").needed(5) == 2
    assert Policy(on_missing="continue").needed(1) == 1
    assert Policy(quorum=3).needed(5) == 3


@pytest.mark.parametrize("name", ["", "-a", "A", "a_b", "a.b", "a/b", "å", "a\n", "a" * 41])
def test_a_name_that_is_no_folder_and_no_certificate_is_no_sites(name):
    with pytest.raises(ParameterError, match="site name: expected"):
        check_site_name(name)


@given(SITE_NAMES)
def test_small_letters_digits_and_hyphens_are_a_sites_name(name):
    check_site_name(name)


def test_a_range_of_scales_is_two_rising_numbers():
    assert parsed('name = "a"\nnodes = ["a", "b"]\nscale = [0.5, 20]\n').scale == (0.5, 20.0)
    for wrong in ("[1]", "[2, 1]", "[0, 1]", "[1, inf]", '["a", "b"]', "3", "[true, 2]", "[-1, 2]", "[nan, 2]"):
        with pytest.raises(ParameterError, match=r"scale: expected two numbers, \[low, high\]"):
            parsed(f'name = "a"\nnodes = ["a", "b"]\nscale = {wrong}\n')
    with pytest.raises(ParameterError, match="scale says nothing"):
        parsed('name = "a"\nnodes = ["a", "b"]\nscale = [1, 2]\nstandardize = true\n')
