#include <pybind11/embed.h>

#include <cstdlib>

#include "gtest/gtest.h"

// Tests for pytest in a program that has the interpreter and esdp._core inside: here a sanitizer
// sees the module, which in Debian's interpreter it cannot. ESDP_SCRIPT names the file of tests.

namespace py = pybind11;

extern "C" PyObject* PyInit__core();

namespace esdp::python {
namespace {

// What the sanitizer says is not to be captured, nor its signals taken by faulthandler.
constexpr char kRun[] = R"(
import os, sys
import _core

sys.modules["esdp._core"] = _core
sys.path.insert(0, "bindings/python")
sys.dont_write_bytecode = True

import pytest

options = ["-v", "-s", "--tb=short", "-c", "/dev/null", "--rootdir", os.getcwd()]
options += ["-p", "no:cacheprovider", "-p", "no:faulthandler", "--basetemp", os.environ["TEST_TMPDIR"] + "/pytest"]
options += ["-W", "error::pytest.PytestUnraisableExceptionWarning"]
code = int(pytest.main([*options, os.environ["ESDP_SCRIPT"]]))
)";

TEST(InProgramTest, TestsOfThePackagePass) {
  ASSERT_EQ(PyImport_AppendInittab("_core", &PyInit__core), 0);
  const py::scoped_interpreter interpreter;
  const py::dict names;
  py::exec(kRun, names);
  EXPECT_EQ(names["code"].cast<int>(), 0);
}

}  // namespace
}  // namespace esdp::python
