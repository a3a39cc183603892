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
[mypy-google.*]
ignore_missing_imports = True
[mypy-esdp._files_pb2]
ignore_errors = True
"""


# What the guide shows, with the types that a checker is to see.
IDIOMS = """
import esdp
import numpy

def show(region: esdp.Region, part: esdp.Slice) -> int:
    view: memoryview = region.view()
    view[:5] = b"hello"
    numpy.frombuffer(region.view(), dtype=numpy.uint16)[0] = 258
    copied: bytes = bytes(region.view()) + bytes(part.view()[1:3])
    return len(copied) + sum(region.view())

def post(socket: esdp.Socket, queue: esdp.EventQueue, region: esdp.Region) -> list[int]:
    name: esdp.OpId = socket.recv(region[:10], queue, "the receive", wait_all=True)
    name.cancel()
    return [event.check().bytes for event in queue.get(min=1, timeout=5) if event.cookie == "the receive"]

version: str = esdp.__version__
"""
WRONG = """
import esdp
esdp.Context(fabric="qpip").queue(depth="many")
esdp.Context().allocate(10).view().nothing
"""
# What stubtest says of more than a stub that is wrong.
ALLOWED = """
# pybind11 gives an __init__ that only raises to what no program can make.
esdp\\.(\\w+\\.)?(\\w+Stats|\\w+Report|Event|EventQueue|OpId|Region|Slice|Socket|Stream\\w*)\\.__init__
# The buffer protocol has a method from Python 3.12 on.
esdp\\.(_core\\.)?(Region|Slice)\\.__buffer__
# Of modules that are their own stubs: names of typing, aliases, and what only a checker imports.
esdp\\.\\w+\\.(AsyncIterator|Awaitable|Generator|Iterator|NamedTuple|Protocol|Sequence|_CompleteAt|_Exposure|_Mode|_OnCancel|_Path)
esdp\\._transfers\\.Socket
# What protoc makes.
esdp\\._files_pb2.*
# Of asyncio's base class, whose stub has no such methods.
esdp\\.\\w+\\.Transport\\._maybe_(pause|resume)_protocol
"""


@pytest.fixture
def settings(tmp_path):
    file = tmp_path / "mypy.ini"
    file.write_text(SETTINGS)
    return file


def run_mypy(module, *arguments):
    command = [sys.executable, "-m", module, *map(str, arguments)]
    environment = dict(os.environ, MYPYPATH="bindings/python")
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def complaints_about(files, settings):
    result = run_mypy("mypy", "--config-file", settings, "--cache-dir", settings.parent / "cache", *files)
    assert result.returncode in (0, 1), result.stderr
    return [line for line in result.stdout.splitlines() if "error:" in line]


def test_package_and_samples_are_strictly_typed_and_a_wrong_call_is_found(settings, tmp_path):
    wrong, idioms = tmp_path / "wrong.py", tmp_path / "idioms.py"
    wrong.write_text(WRONG)
    idioms.write_text(IDIOMS)
    files = [os.path.join(SAMPLES, name) for name in sorted(os.listdir(SAMPLES)) if name.endswith(".py")]
    package = "bindings/python/esdp"
    own = [name for name in sorted(os.listdir(package)) if name.endswith(".py") and not name.endswith("_pb2.py")]
    files += [os.path.join(package, name) for name in own]
    complaints = complaints_about([*files, idioms, wrong], settings)
    assert len(complaints) == 2 and all("wrong.py" in line for line in complaints), complaints
    assert "wrong.py:3" in complaints[0] and 'expected "int"' in complaints[0]
    assert '"memoryview" has no attribute "nothing"' in complaints[1]


def test_the_idioms_that_are_typed_run():
    names = {}
    exec(IDIOMS, names)
    with esdp.Context(fabric="sim:1") as context, context.allocate(10) as region:
        assert names["show"](region, region[2:8]) == 12 + 2 + 1 + sum(b"llo")
    assert names["version"] == esdp.__version__


def test_stubs_and_module_agree(settings, tmp_path):
    allowed = tmp_path / "allowed"
    allowed.write_text(ALLOWED)
    result = run_mypy("mypy.stubtest", "esdp", "--concise", "--mypy-config-file", settings, "--allowlist", allowed)
    assert result.returncode == 0, result.stdout + result.stderr


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
