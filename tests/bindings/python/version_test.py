"""The package says which version it is, and to a Python that cannot load its module what to do."""

import os
import pathlib
import shutil
import subprocess
import sys

import esdp
import pytest


def test_the_version_is_that_of_the_library():
    assert esdp.__version__ == pathlib.Path("impl/package/version").read_text().strip()


# What the loader says in a Python of another version, in one whose symbols are others, and where there is no module.
REASONS = ["Python version mismatch: compiled\nfor Python 3.11", "undefined symbol: PyFrame_GetCode", None]


@pytest.mark.parametrize("reason", REASONS)
def test_a_python_that_cannot_load_the_module_is_told_in_one_line_what_to_do(reason, tmp_path):
    package = tmp_path / "esdp"
    package.mkdir()
    for file in pathlib.Path(esdp.__file__).parent.glob("*.py"):
        shutil.copy(file, package)
    if reason is not None:
        (package / "_core.py").write_text(f"raise ImportError({reason!r})\n")
    environment = dict(os.environ, PYTHONPATH=str(tmp_path))
    command = [sys.executable, "-c", "import esdp"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = result.stderr.splitlines()
    assert result.returncode == 1 and result.stderr.count("Traceback") == 1
    assert said[-1].startswith("ImportError: esdp's module does not load into Python 3.")
    assert " ".join((reason or "No module named 'esdp._core'").split()) in said[-1]
    assert "/usr/bin/python3 of Debian 12" in said[-1]
    assert f"{sys.executable} -m pip install ./bindings/python" in said[-1]
