from pathlib import Path

import pytest

from silograph import SignalError, SilosError
from silograph.data.folders import FoundTable, find_tables, stem_of


def made(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a,b\n1,2\n3,5\n")
    return folder


def silos(*places: Path) -> list[str]:
    return [one.silo for one in find_tables(places)]


def test_a_folder_is_a_site_and_a_file_is_a_silo_by_itself(tmp_path):
    made(tmp_path, "oslo/b.csv", "oslo/a.npy", "oslo/deep/c.tsv", "oslo/notes.txt", "lima.csv")
    found = find_tables([tmp_path / "lima.csv", tmp_path / "oslo"])
    assert [one.silo for one in found] == ["lima", "oslo/a", "oslo/b", "oslo/c"]
    assert [one.site for one in found] == [None, "oslo", "oslo", "oslo"]
    assert found[0] == FoundTable(path=tmp_path / "lima.csv", name="lima")


def test_hidden_files_and_the_results_of_a_run_are_no_tables(tmp_path):
    made(tmp_path, "oslo/a.csv", "oslo/.b.csv", "oslo/.cache/c.csv", "oslo/run/silos/a/edges.csv", "oslo/run/run.json")
    assert silos(tmp_path / "oslo") == ["oslo/a"]


def test_a_pattern_stands_for_its_files(tmp_path):
    made(tmp_path, "oslo/a.csv", "oslo/b.csv", "oslo/c.tsv")
    assert silos(tmp_path / "oslo" / "*.csv") == ["a", "b"]
    with pytest.raises(SignalError, match="no file or folder is called like this"):
        find_tables([tmp_path / "lima" / "*.csv"])


def test_of_a_bids_folder_the_time_series_are_taken_and_called_by_subject(tmp_path):
    made(
        tmp_path,
        "oslo/participants.tsv",
        "oslo/sub-01/func/sub-01_task-rest_atlas-aal_timeseries.tsv",
        "oslo/sub-01/func/sub-01_task-rest_desc-confounds_timeseries.tsv",
        "oslo/sub-01/func/sub-01_task-rest_events.tsv",
        "oslo/sub-02/func/sub-02_task-rest_atlas-aal_timeseries.tsv",
    )
    assert silos(tmp_path / "oslo") == ["oslo/sub-01", "oslo/sub-02"]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["sub-01_ses-a_timeseries", "sub-01_ses-b_timeseries"], ["sub-01_ses-a", "sub-01_ses-b"]),
        (["sub-01_task-x_run-1_timeseries", "sub-01_task-x_run-2_timeseries"], ["sub-01_run-1", "sub-01_run-2"]),
        (["sub-1_ses-a_run-1_timeseries", "sub-1_ses-a_run-2_timeseries"], ["sub-1_ses-a_run-1", "sub-1_ses-a_run-2"]),
        (["sub-1_x_timeseries", "sub-1_y_timeseries"], ["sub-1_x_timeseries", "sub-1_y_timeseries"]),
        (["sub-01", "control"], ["control", "sub-01"]),
        (["sub-01_bold", "sub-02_bold"], ["sub-01", "sub-02"]),
    ],
)  # fmt: skip
def test_a_subject_is_told_apart_by_session_and_run_where_needed(tmp_path, files, names):
    made(tmp_path, *(f"oslo/{file}.tsv" for file in files))
    assert silos(tmp_path / "oslo") == [f"oslo/{name}" for name in names]


def test_names_of_the_connectomes_project_tell_subject_and_site(tmp_path):
    nyu = ["NYU_0050952_rois_aal.1D", "NYU_0050954_rois_aal.1D"]
    made(tmp_path, *(f"one/{name}" for name in nyu), *(f"all/{name}" for name in (*nyu, "UM_1_0050272_rois_aal.1D")))
    assert silos(tmp_path / "one") == ["one/0050952", "one/0050954"]
    assert silos(tmp_path / "all") == ["NYU/0050952", "NYU/0050954", "UM_1/0050272"]


def test_a_site_in_a_bids_name_is_the_site_where_a_folder_has_several(tmp_path):
    files = ("sub-01_site-oslo_task-rest_timeseries", "sub-01_site-lima_timeseries", "sub-02_site-lima_timeseries")
    made(tmp_path, *(f"all/{file}.tsv" for file in files), f"one/{files[0]}.tsv")
    assert silos(tmp_path / "all") == ["lima/sub-01", "oslo/sub-01", "lima/sub-02"]
    assert silos(tmp_path / "one") == ["one/sub-01"]


def test_files_of_one_name_in_several_folders_are_called_by_their_folders(tmp_path):
    made(tmp_path, "oslo/p1/rest.csv", "oslo/p2/rest.csv", "x/lima.csv", "y/lima.csv")
    assert silos(tmp_path / "oslo") == ["oslo/p1_rest", "oslo/p2_rest"]
    assert silos(tmp_path / "x" / "lima.csv", tmp_path / "y" / "lima.csv") == ["x_lima", "y_lima"]
    assert silos(tmp_path / "oslo" / "p1", tmp_path / "x") == ["p1/rest", "x/lima"]
    made(tmp_path, "a/data/r.csv", "b/data/r.csv")
    assert silos(tmp_path / "a" / "data", tmp_path / "b" / "data") == ["a_data/r", "b_data/r"]


def test_two_tables_that_would_have_one_name_are_both_named(tmp_path):
    made(tmp_path, "oslo/a.csv", "oslo/a.tsv")
    with pytest.raises(SilosError, match=r"both be called 'oslo/a': .*a\.csv and .*a\.tsv"):
        find_tables([tmp_path / "oslo"])


def test_a_file_is_given_once_and_not_called_like_a_folder(tmp_path):
    made(tmp_path, "oslo/a.csv", "oslo/b.csv", "oslo.csv")
    for places in (["oslo/a.csv", "oslo/../oslo/a.csv"], ["oslo", "oslo/b.csv"], ["oslo", "oslo"]):
        with pytest.raises(SilosError, match="given twice"):
            find_tables([tmp_path / place for place in places])
    with pytest.raises(SilosError, match="a folder has the name 'oslo', too"):
        find_tables([tmp_path / "oslo", tmp_path / "oslo.csv"])


def test_a_folder_without_tables_is_an_error_that_says_what_a_table_is(tmp_path):
    made(tmp_path, "oslo/notes.txt")
    with pytest.raises(SignalError, match=r"oslo: expected a folder of tables \(\.csv, .*got none"):
        find_tables([tmp_path / "oslo"])


def test_a_stem_has_no_suffix_that_tells_a_format():
    assert [stem_of(Path(name)) for name in ("a.csv", "a.csv.gz", "a.b.TSV", "a.1D.gz", "a.mat")] == [
        "a",
        "a",
        "a.b",
        "a",
        "a",
    ]
