"""`silograph learn` where the system is not POSIX, as on Windows: modules that are missing there are hidden."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = """
import sys
sys.modules["pwd"] = sys.modules["fcntl"] = None
from silograph.__main__ import main
sys.argv = ["silograph", "learn", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("n_tables", [1, 2])
def test_learn_needs_neither_users_nor_locks(tmp_path, rng, n_tables):
    tables = [tmp_path / f"site{number}.csv" for number in range(n_tables)]
    for table in tables:
        np.savetxt(table, rng.normal(size=(30, 6)), delimiter=",")
    command = [sys.executable, "-c", PROGRAM, *map(str, tables), "--out", str(tmp_path / "run"), "--report"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert Path(tmp_path, "run", "run.json").is_file()
    assert Path(tmp_path, "run", "report.html").is_file()
