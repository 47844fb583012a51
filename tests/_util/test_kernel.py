import ast
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import silograph
from silograph._util import kernel as kernel_module

PACKAGE = Path(silograph.__file__).parent

COLD = """
import json, sys
from numba.core.dispatcher import Dispatcher
from silograph._util.kernel import telling_of_compiling
from silograph.engine.warm_up import warm_up

told = []
with telling_of_compiling(lambda: told.append("compiling")):
    warm_up()
found = [o for name, m in sys.modules.items() if name.startswith("silograph") for o in vars(m).values()]
kernels = {k.py_func.__qualname__: len(k.signatures) for k in found if isinstance(k, Dispatcher)}
print(json.dumps([told, kernels]))
"""
VALUE = """
import numpy as np
from silograph.graph.pairs import Pairs
from silograph.local.problem import LocalProblem

problem = LocalProblem(cost=np.ones(3), pairs=Pairs.all(3), quadratic=1.0, alpha=1.0)
print(problem.value(np.ones(3)))
"""


def run(script: str, cache: Path, *path: str) -> str:
    """What a script prints in a process of its own, with machine code in a folder of its own."""
    search = os.pathsep.join([*path, *sys.path])
    environment = os.environ | {"PYTHONPATH": search, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_a_first_run_says_that_it_compiles_each_kernel_once_and_the_second_run_nothing(tmp_path):
    told, kernels = json.loads(run(COLD, tmp_path))
    assert told == ["compiling"]
    assert kernels["minimise"] == kernels["direction"] == kernels["find_pull_strength"] == 1
    assert {name: number for name, number in kernels.items() if number > 1} == {}
    assert json.loads(run(COLD, tmp_path))[0] == []


def test_a_kernel_that_changed_makes_callers_in_other_files_compile_anew(tmp_path):
    copy = shutil.copytree(PACKAGE, tmp_path / "silograph", ignore=shutil.ignore_patterns("__pycache__"))
    before = float(run(VALUE, tmp_path / "cache", str(tmp_path)))
    assert before == pytest.approx(3 + 1.5 - 3 * np.log(2))
    called = copy / "graph" / "pairs.py"  # value() is in problem.py
    text = called.read_text(encoding="utf-8")
    assert text.count("out[i] += total") == 1
    called.write_text(text.replace("out[i] += total", "out[i] += total + 7"), encoding="utf-8")
    assert float(run(VALUE, tmp_path / "cache", str(tmp_path))) == pytest.approx(3 + 1.5 - 3 * np.log(9))


def imported_from(path: Path) -> dict[str, str]:
    """Names that a file imports from silograph, and from which module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.asname or alias.name: node.module for node in imports for alias in node.names}


def test_whatever_a_kernel_reads_stands_in_a_file_whose_change_is_noticed():
    """The hash is of files with kernels: a constant from elsewhere could change behind its back."""
    files = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    hashed = {path for path, text in files.items() if "@kernel\n" in text or "@overload(" in text}
    names = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in hashed}
    noticed, n_kernels = set(names.values()), 0
    for path, name in names.items():
        imported = imported_from(path)
        for function in vars(importlib.import_module(name)).values():
            if isinstance(function, Dispatcher) and function.py_func.__module__ == name:
                read = {imported.get(word, "") for word in function.py_func.__code__.co_names}
                assert {module for module in read if module.startswith("silograph")} <= noticed, function
                n_kernels += 1
    assert n_kernels > 30


def test_the_hash_is_of_content_not_of_time(tmp_path, monkeypatch):
    for name, text in (("a.py", "@kernel\ndef f(): ...\n"), ("b.py", "no loops here\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(kernel_module, "PACKAGE", tmp_path)
    taken = kernel_module.kernel_sources.__wrapped__
    first = taken()
    os.utime(tmp_path / "a.py", (1, 1))
    (tmp_path / "b.py").write_text("still none\n", encoding="utf-8")
    assert taken() == first
    (tmp_path / "a.py").write_text("@kernel\ndef f(): return 1\n", encoding="utf-8")
    assert taken() != first
