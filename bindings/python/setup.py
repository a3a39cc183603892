"""Builds the wheel: the Python files from here, and the module as Bazel builds it for the tests.

    python3 -m venv --system-site-packages /tmp/venv
    /tmp/venv/bin/pip install ./bindings/python --no-build-isolation
"""

import os
import pathlib
import shutil
import subprocess
import tempfile

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODULE = "bindings/python/esdp/_core.so"
BAZEL = """
. impl/bazel/bazel.sh
esdp_bazel build --config=opt //bindings/python:esdp/_core.so >&2 &&
  esdp_bazel info --config=opt bazel-bin
"""


class BuildPy(build_py):
    def run(self):
        super().run()
        folder = subprocess.run(["bash", "-ec", BAZEL], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        target = pathlib.Path(self.build_lib, "esdp", "_core.so")
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            target.unlink()
        shutil.copyfile(pathlib.Path(folder.stdout.strip(), MODULE), target)


class BinaryDistribution(Distribution):
    """The wheel is for this interpreter and machine, although setuptools compiles nothing."""

    def has_ext_modules(self):
        return True


os.chdir(HERE)
scratch = tempfile.mkdtemp(prefix="esdp-wheel-")  # nothing is left in the repository
setup(
    name="esdp",
    version="0.1",
    description="Sockets over RDMA: registered memory, posted operations, completions from an event queue",
    packages=["esdp"],
    package_data={"esdp": ["py.typed", "*.pyi"]},
    python_requires=">=3.11",
    zip_safe=False,
    cmdclass={"build_py": BuildPy},
    distclass=BinaryDistribution,
    options={"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}},
)
