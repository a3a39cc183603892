"""Builds the wheel: the Python files from here, and the module as Bazel builds it for the tests.

    /usr/bin/python3 -m venv --system-site-packages /tmp/venv
    /tmp/venv/bin/pip install ./bindings/python --no-build-isolation
"""

import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.develop import develop
from setuptools.command.editable_wheel import editable_wheel

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILT = ("_core.so", "_files_pb2.py", "_files_pb2.pyi")  # in bindings/python/esdp, by Bazel
# With the headers of the Python that runs this: the module loads into no other.
BAZEL = f"""
. impl/bazel/bazel.sh
options=(--config=opt --repo_env=ESDP_PYTHON_HEADERS={sysconfig.get_paths()["include"]})
esdp_bazel build "${{options[@]}}" //bindings/python:esdp >&2 &&
  esdp_bazel info "${{options[@]}}" bazel-bin
"""
NOT_EDITABLE = (
    "esdp cannot be installed editable: its module is built by Bazel, outside of the repository; "
    "use `pip install ./bindings/python --no-build-isolation`, again after each change"
)


class BuildPy(build_py):
    def run(self):
        super().run()
        folder = subprocess.run(["bash", "-ec", BAZEL], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        target = pathlib.Path(self.build_lib, "esdp")
        target.mkdir(parents=True, exist_ok=True)
        for name in BUILT:
            (target / name).unlink(missing_ok=True)
            shutil.copyfile(pathlib.Path(folder.stdout.strip(), "bindings/python/esdp", name), target / name)


def refuse(command):
    raise SystemExit(NOT_EDITABLE)


class EditableWheel(editable_wheel):
    """`pip install -e`, which is refused before anything is built."""

    initialize_options = refuse


class Develop(develop):
    """The same with an older pip."""

    initialize_options = refuse


class BinaryDistribution(Distribution):
    """The wheel is for this interpreter and machine, although setuptools compiles nothing."""

    def has_ext_modules(self):
        return True


os.chdir(HERE)
scratch = tempfile.mkdtemp(prefix="esdp-wheel-")  # nothing is left in the repository
setup(
    name="esdp",
    version=(ROOT / "impl/package/version").read_text().strip(),
    description="Sockets over RDMA: registered memory, posted operations, completions from an event queue",
    packages=["esdp"],
    package_data={"esdp": ["py.typed", "*.pyi"]},
    python_requires=">=3.11",
    extras_require={"files": ["protobuf>=3.20"]},
    zip_safe=False,
    cmdclass={"build_py": BuildPy, "editable_wheel": EditableWheel, "develop": Develop},
    distclass=BinaryDistribution,
    options={"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}},
)
