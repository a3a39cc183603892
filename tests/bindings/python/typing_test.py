"""The type stubs: strict mypy has nothing to say about package and samples, and the stubs tell of what is there."""

import ast
import os
import subprocess
import sys

import esdp
import pytest

SAMPLES = "samples/python"
STUBS = "bindings/python/esdp/_core.pyi"
SETTINGS = """
[mypy]
strict = True
mypy_path = bindings/python
[mypy-numpy.*]
follow_imports = skip
[mypy-matplotlib.*]
ignore_missing_imports = True
"""


def test_package_and_samples_are_strictly_typed_and_a_wrong_call_is_found(tmp_path):
    settings, wrong = tmp_path / "mypy.ini", tmp_path / "wrong.py"
    settings.write_text(SETTINGS)
    wrong.write_text('import esdp\nesdp.Context(fabric="qpip").queue(depth="many")\n')
    files = [os.path.join(SAMPLES, name) for name in sorted(os.listdir(SAMPLES)) if name.endswith(".py")]
    package = "bindings/python/esdp"
    files += [os.path.join(package, name) for name in sorted(os.listdir(package)) if name.endswith(".py")]
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), "--cache-dir", str(tmp_path / "cache")]
    result = subprocess.run(command + files + [str(wrong)], capture_output=True, text=True, check=False)
    complaints = [line for line in result.stdout.splitlines() if "error:" in line]
    assert len(complaints) == 1 and "wrong.py:2" in complaints[0], result.stdout + result.stderr
    assert 'expected "int"' in complaints[0]


def stubs():
    with open(STUBS, encoding="utf-8") as file:
        classes = [node for node in ast.parse(file.read()).body if isinstance(node, ast.ClassDef)]
    for node in classes:
        if not node.name.startswith("_"):
            yield node.name, {member.name for member in node.body if isinstance(member, ast.FunctionDef)}


@pytest.mark.parametrize("name, members", stubs())
def test_the_stubs_tell_of_what_is_there(name, members):
    there = {member for member in vars(getattr(esdp, name)) if not member.startswith("__")}
    inherited = {"asdict", "_fields"} if name.endswith("Stats") else set()
    assert {member for member in members if not member.startswith("__")} == there - inherited


def test_every_class_has_its_stubs():
    classes = {name for name, value in vars(esdp._core).items() if isinstance(value, type) and not name.startswith("_")}
    assert classes == {name for name, _ in stubs()}


def test_every_public_name_has_its_words():
    for name in esdp.__all__:
        value = getattr(esdp, name)
        if isinstance(value, type):
            assert value.__doc__ and len(value.__doc__) > 10, name
