"""The demo, as a stranger runs it: what it promises at its end is so."""

import subprocess
import sys

import pytest

pytest.importorskip("nvflare")

pytestmark = pytest.mark.federation


def test_the_demo_ends_with_the_bits_of_one_machine(tmp_path):
    command = [sys.executable, "-m", "silograph", "federation", "demo", "--out", "demo"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("  identical") == 4  # the consensus, and each site's own graph
    assert "DIFFERENT" not in done.stdout
