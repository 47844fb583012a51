"""ABIDE in its three formats, written here from the same made-up series, and what is left out of it."""

import numpy as np
import pandas as pd
import pytest

from silograph.datasets import abide_from_nilearn, load_abide
from silograph.datasets.abide_files import TABLE
from silograph.errors import DataError, ParameterError

SUBJECTS, GROUPS, ROIS = [50952, 50954, 51036], [1, 1, 2], [10, 11, 3455, 12]


@pytest.fixture
def series() -> np.ndarray:
    """Three subjects, 30 frames, 4 regions, of which '3455' never changes for the second."""
    values = np.random.default_rng(0).normal(size=(3, 30, 4))
    values[1, :, 2] = 0
    return values


def write_npz(folder, series, **other):
    content = {"X": series, "dx": np.array(GROUPS), "sub_id": np.array(SUBJECTS), "roi": np.array(ROIS), **other}
    np.savez(folder / "abide.npz", **content)
    return folder / "abide.npz"


def write_folder(folder, series, atlas="ho", below="cpac/filt_noglobal", table=True):
    root = folder / "ABIDE_pcp"
    (root / below).mkdir(parents=True, exist_ok=True)
    for subject, values in zip(SUBJECTS, series, strict=True):
        np.savetxt(
            root / below / f"NYU_00{subject}_rois_{atlas}.1D",
            values,
            fmt="%.17g",
            delimiter="\t",
            header="\t".join(f"#{roi}" for roi in ROIS),
            comments="",
        )
    if table:
        ids = [f"NYU_00{subject}" for subject in SUBJECTS]
        rows = {"SUB_ID": SUBJECTS, "FILE_ID": ids, "DX_GROUP": GROUPS, "SITE_ID": "NYU"}
        absent = pd.DataFrame({"SUB_ID": [1, 2], "FILE_ID": "no_filename", "DX_GROUP": 1, "SITE_ID": "PITT"})
        pd.concat([absent, pd.DataFrame(rows)]).to_csv(root / TABLE)
    return root


def bunch(series, phenotypic=pd.DataFrame):
    return {"rois_ho": list(series), "phenotypic": phenotypic({"SUB_ID": SUBJECTS, "DX_GROUP": GROUPS})}


def records(columns):
    return np.rec.fromarrays(list(columns.values()), names=list(columns))


def test_every_format_gives_the_same(series, tmp_path):
    names = [str(roi) for roi in ROIS]
    one = load_abide(write_npz(tmp_path, series))
    for other in (
        load_abide(write_folder(tmp_path, series)),
        load_abide(write_folder(tmp_path, series) / "cpac" / "filt_noglobal"),
        abide_from_nilearn(bunch(series), names=names),
        abide_from_nilearn(bunch(series, records), atlas="ho", names=names),
    ):
        assert (other.groups, other.regions, other.dropped, other.skipped) == (
            {"50952": "autism", "50954": "autism", "51036": "control"},
            ("10", "11", "12"),
            {"3455": ("50954",)},
            {},
        )
        assert list(other.series) == list(one.series)
        for subject, values in one.series.items():
            assert values == pytest.approx(other.series[subject], rel=1e-14)
    assert np.array_equal(one.series["51036"], series[2][:, [0, 1, 3]])


def test_the_folder_of_data_is_found(series, tmp_path, monkeypatch):
    monkeypatch.setenv("SILOGRAPH_DATA", str(tmp_path))
    write_folder(tmp_path, series)
    assert load_abide().regions == ("10", "11", "12")
    write_npz(tmp_path, series + 1)
    assert load_abide().series["50952"] == pytest.approx(series[0][:, [0, 1, 3]] + 1)


def test_nilearn_does_not_name_regions():
    assert abide_from_nilearn(bunch(np.random.default_rng(0).normal(size=(3, 9, 4)))).regions == ("0", "1", "2", "3")


def test_constant_regions_can_be_an_error(series, tmp_path):
    path = write_npz(tmp_path, series)
    with pytest.raises(DataError, match=r"region '3455': .* constant for subject 50954 \(1 of 4 regions"):
        load_abide(path, constant="error")
    assert load_abide(path, regions=[0, 1], constant="error").regions == ("10", "11")


def test_regions_are_chosen_by_name_and_by_number_in_the_order_asked_for(series, tmp_path):
    found = load_abide(write_npz(tmp_path, series), regions=["12", 0])
    assert found.regions == ("12", "10")
    assert found.dropped == {}
    assert np.array_equal(found.series["50954"], series[1][:, [3, 0]])


def test_subjects_with_too_few_frames_are_named(series):
    unequal = [series[0], series[1][:12], series[2][:20]]
    found = abide_from_nilearn(bunch(unequal), frames=15)
    assert found.skipped == {"50954": 12}
    assert found.dropped == {}  # the region that never changed was that subject's
    assert {len(values) for values in found.series.values()} == {15}
    assert list(found.groups) == ["50952", "51036"]
    assert [len(values) for values in abide_from_nilearn(bunch(unequal)).series.values()] == [30, 12, 20]
    with pytest.raises(DataError, match=r"subject 50954: expected at least 15 frames, got 12 \(1 of 3 subjects"):
        abide_from_nilearn(bunch(unequal), frames=15, short="error")
    with pytest.raises(DataError, match="3 of 3 subjects have fewer"):
        abide_from_nilearn(bunch(unequal), frames=31)


def test_a_region_may_be_still_in_the_first_frames_only(series):
    series[0, :5, 0] = 1
    assert set(abide_from_nilearn(bunch(series), frames=5).dropped) == {"0", "2"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regions": ["Thalamus"]}, "regions: expected a name as '10' or a number from 0 to 3, got 'Thalamus'"),
        ({"regions": [4]}, "regions: .* got 4"),
        ({"regions": [-1]}, "regions: .* got -1"),
        ({"regions": [1.5]}, "regions: .* got 1.5"),
        ({"regions": ["10", 0]}, "regions: expected different regions"),
        ({"frames": 1}, "frames: expected a whole number ≥ 2"),
        ({"constant": "keep"}, "constant: expected 'drop' or 'error', got 'keep'"),
        ({"short": "drop"}, "short: expected 'skip' or 'error', got 'drop'"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(series, options, message, tmp_path):
    with pytest.raises(ParameterError, match=message):
        load_abide(write_npz(tmp_path, series), **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dx": np.array([1, 2])}, r"abide\.npz, dx: expected 3 values, got shape \(2,\)"),
        ({"dx": np.array([1, 2, 3])}, r"subject 51036: expected DX_GROUP 1 \(autism\) or 2 \(control\), got 3"),
        ({"sub_id": np.array([1, 2, 1])}, "expected different subjects, got '1' twice"),
        ({"roi": np.arange(5)}, "roi: expected 4 values"),
        ({"X": np.zeros((3, 4))}, "X: expected any × any × any numbers, got 3 × 4"),
        ({"X": np.full((3, 5, 4), np.inf)}, r"X\[0, 0, 0\]: expected a finite number, got inf"),
    ],
)
def test_an_npz_file_with_something_else_is_refused(series, change, message, tmp_path):
    with pytest.raises(DataError, match=message):
        load_abide(write_npz(tmp_path, series, **change))


def test_a_file_without_a_row_in_the_table_is_named(series, tmp_path):
    root = write_folder(tmp_path, series)
    table = pd.read_csv(root / TABLE)
    table[table["SUB_ID"] != 51036].to_csv(root / TABLE)
    with pytest.raises(DataError, match=r"NYU_0051036_rois_ho\.1D: expected a row with FILE_ID 'NYU_0051036' in .*csv"):
        load_abide(root)


def test_a_folder_without_files_or_table_says_what_is_missing(series, tmp_path):
    root = write_folder(tmp_path, series, table=False)
    with pytest.raises(DataError, match=rf"expected {TABLE} in it or just above, got none"):
        load_abide(root)
    with pytest.raises(DataError, match=r"expected files \*_rois_aal\.1D, got none.*another atlas"):
        load_abide(root, atlas="aal")
    with pytest.raises(DataError, match=r"none\.csv: expected a table of subjects"):
        load_abide(root, phenotypes=tmp_path / "none.csv")
    (root / TABLE).write_text("SUB_ID,DX_GROUP\n50952,1\n")
    with pytest.raises(DataError, match="expected rows with the columns SUB_ID, FILE_ID, DX_GROUP"):
        load_abide(root)


def test_a_table_elsewhere_is_taken(series, tmp_path):
    root = write_folder(tmp_path, series)
    (root / TABLE).rename(tmp_path / "subjects.csv")
    assert len(load_abide(root, phenotypes=tmp_path / "subjects.csv").series) == 3


def test_two_pipelines_in_one_folder_are_not_mixed(series, tmp_path):
    write_folder(tmp_path, series)
    root = write_folder(tmp_path, series, below="cpac/nofilt_noglobal")
    with pytest.raises(DataError, match=r"expected different subjects, got '50952' twice.*several pipelines"):
        load_abide(root)
    assert len(load_abide(root / "cpac" / "nofilt_noglobal").series) == 3


def test_a_damaged_series_is_named(series, tmp_path):
    root = write_folder(tmp_path, series)
    file = root / "cpac" / "filt_noglobal" / "NYU_0050954_rois_ho.1D"
    whole = file.read_text()
    for wrong in ("nan", "n/a"):
        file.write_text(whole + f"1\t2\t{wrong}\t4\n")
        with pytest.raises(
            DataError, match=r"NYU_0050954_rois_ho\.1D, row 32, column '3455': expected a finite number"
        ):
            load_abide(root)
    file.write_text(whole.replace("#11", "#99"))
    with pytest.raises(DataError, match=r"NYU_0050954_rois_ho\.1D: expected the 4 regions of NYU_0050952_rois_ho\.1D"):
        load_abide(root)


def test_what_is_not_from_nilearn_is_refused(series):
    whole = bunch(series)
    with pytest.raises(DataError, match="expected rois_aal, got rois_ho"):
        abide_from_nilearn(whole, atlas="aal")
    with pytest.raises(DataError, match="expected one atlas, got rois_ho, rois_aal"):
        abide_from_nilearn({**whole, "rois_aal": []})
    with pytest.raises(DataError, match=r"one array per row of phenotypic \(3\), got 2"):
        abide_from_nilearn({**whole, "rois_ho": list(series[:2])})
    with pytest.raises(DataError, match="names: expected 4, one per region of rois_ho, got 1"):
        abide_from_nilearn(whole, names=["a"])
    with pytest.raises(DataError, match="subject 51036: expected any × 4 numbers, got 30 × 3"):
        abide_from_nilearn({**whole, "rois_ho": [*series[:2], series[2][:, :3]]})


def test_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "abide.csv").write_text("")
    with pytest.raises(DataError, match=r"expected an \.npz file or a folder of \.1D files, got '\.csv'"):
        load_abide(tmp_path / "abide.csv")
