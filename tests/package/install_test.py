#!/usr/bin/env python3
"""./install, and programs outside of the tree that use what it has put under a prefix."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

RUNFILES = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
PAGES = sorted(page.name for page in (RUNFILES / "docs/man").glob("*.[1-9]"))
TOOLS = [page.removesuffix(".1") for page in PAGES if page.endswith(".1")]
# Of the public headers, those that a program includes: what the others define is inside.
HEADERS = sorted(path for path in (RUNFILES / "api/esdp").glob("*.h") if not path.stem.startswith("coroutine_"))
CLASSES = r"esdp::(Address|Context|DiagnosticsReport|Event|EventQueue|Region|Slice|Socket|Stream|StreamListener)::"
OPTIMISED = sys.argv[1:] == ["optimised"]  # as ./install builds it
LIBRARIES = ("libesdp.so", "libesdp_debug.so")
# package for pkg-config -> what the loader is asked for
PACKAGES = {"esdp": {"libesdp.so.0.1"}, "esdp_debug": {"libesdp_debug.so.0.1"}, "esdp_static": set()}
CMAKE = """cmake_minimum_required(VERSION 3.20)
project(user CXX)
find_package(esdp 0.1 REQUIRED)
foreach(library esdp esdp_debug esdp_static)
  add_executable(with_${library} hello.cc)
  target_link_libraries(with_${library} PRIVATE esdp::${library})
endforeach()
"""


def run(*command, code=0, **arguments):
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, timeout=300, **arguments
    )
    if result.returncode != code:
        raise AssertionError(f"{command} ended with {result.returncode}\n{result.stdout}{result.stderr}")
    return result


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        first = cls.folder / "first"
        for _ in range(2):  # a second time over the first
            run(RUNFILES / "install", "--prefix", first, "--built", RUNFILES)
        cls.prefix = cls.folder / "moved"  # nothing may know where it was installed
        first.rename(cls.prefix)
        cls.hello = cls.folder / "hello.cc"
        shutil.copy(RUNFILES / "samples/hello.cc", cls.hello)
        cls.misuse = RUNFILES / "tests/package/misuse.cc"
        cls.environment = dict(
            os.environ,
            PKG_CONFIG_PATH=str(cls.prefix / "lib/pkgconfig"),
            LD_LIBRARY_PATH=str(cls.prefix / "lib"),
        )

    def runs(self, program):
        output = run(program, env=self.environment).stdout
        self.assertIn("hello, registered memory", output)

    def needs(self, program):
        """The libraries of ours that a program asks the loader for."""
        dynamic = run("readelf", "-d", program).stdout
        return set(re.findall(r"\(NEEDED\).*\[(libesdp.*)\]", dynamic))

    def flags(self, *arguments):
        return run("pkg-config", *arguments, env=self.environment).stdout.split()

    def build(self, source, package):
        program = self.folder / f"{source.stem}_{package}"
        run("g++", source, "-o", program, *self.flags("--cflags", "--libs", package))
        return program

    def test_a_program_builds_with_pkg_config_against_each_library(self):
        compiled = self.folder / "hello.o"
        run("g++", "-c", "-Wall", "-Wextra", "-Werror", self.hello, "-o", compiled, *self.flags("--cflags", "esdp"))
        for package, needed in PACKAGES.items():
            with self.subTest(package):
                program = self.folder / package
                run("g++", compiled, "-o", program, *self.flags("--libs", package))
                self.assertEqual(needed, self.needs(program))
                self.runs(program)

    def test_a_program_in_c_builds_with_pkg_config_against_libexs(self):
        program = self.folder / "exs_ring"
        flags = self.flags("--cflags", "--libs", "libexs")
        source = RUNFILES / "samples/exs_ring.c"
        run("gcc", "-std=c89", "-pedantic", "-Wall", "-Werror", source, "-o", program, *flags)
        needed = run("readelf", "-d", program).stdout
        self.assertIn("[libexs.so.1]", needed)
        self.assertNotIn("libesdp", needed)
        # It finds libesdp.so beside itself.
        environment = dict(self.environment, EXS_FABRIC="qpip")
        self.assertIn("64 sends of 1 MiB", run(program, env=environment).stdout)
        link = self.prefix / "lib/libexs.so"
        self.assertEqual("libexs.so.1.0", link.resolve().name)
        self.assertNotIn("undefined symbol", run("ldd", "-r", link).stdout)

    def test_a_program_builds_with_cmake_against_each_library(self):
        source, build = self.folder / "user", self.folder / "user/build"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(CMAKE)
        shutil.copy(self.hello, source)
        run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build, "-j2")
        for package, needed in PACKAGES.items():
            self.assertEqual(needed, self.needs(build / f"with_{package}"))
            self.runs(build / f"with_{package}")

    def test_the_debug_library_refuses_what_the_others_let_pass(self):
        said = run(self.build(self.misuse, "esdp_debug"), env=self.environment).stdout
        self.assertIn("INVALID_ARGUMENT", said)
        program = self.build(self.misuse, "esdp")
        if OPTIMISED:
            self.assertEqual("accepted\n", run(program, env=self.environment).stdout)
            self.assertEqual("accepted\n", run(self.build(self.misuse, "esdp_static"), env=self.environment).stdout)
            sections = run("readelf", "-SW", self.prefix / "lib/libesdp_debug.so").stdout
            self.assertIn(".debug_line", sections, "a debugger has nothing to show")
        # A program that is built already is given the debug library in place of the other one.
        preloaded = dict(self.environment, LD_PRELOAD=str(self.prefix / "lib/libesdp_debug.so"))
        self.assertEqual(said, run(program, env=preloaded).stdout)

    def test_a_program_forks_with_each_library(self):
        for package in PACKAGES:
            with self.subTest(package):
                forks = self.build(RUNFILES / "tests/package/forks.cc", package)
                self.assertEqual("111\n", run(forks, env=self.environment).stdout)

    def test_cmake_refuses_a_version_that_is_not_compatible(self):
        version = self.prefix / "lib/cmake/esdp/esdpConfigVersion.cmake"
        for wanted, accepted in (("0.1", True), ("0.1.0", True), ("0", True), ("0.2", False), ("1.0", False)):
            numbers = (wanted + ".0").split(".")
            script = self.folder / "version.cmake"
            script.write_text(
                f"set(PACKAGE_FIND_VERSION {wanted})\n"
                f"set(PACKAGE_FIND_VERSION_COUNT {wanted.count('.') + 1})\n"
                f"set(PACKAGE_FIND_VERSION_MAJOR {numbers[0]})\n"
                f"set(PACKAGE_FIND_VERSION_MINOR {numbers[1]})\n"
                f'include("{version}")\nmessage("answer ${{PACKAGE_VERSION_COMPATIBLE}}")\n'
            )
            self.assertIn("answer " + str(accepted).upper(), run("cmake", "-P", script).stderr, wanted)

    def test_every_public_header_is_there_and_compiles(self):
        headers = sorted(path.name for path in (RUNFILES / "api/esdp").glob("*.h"))
        self.assertEqual(headers, sorted(path.name for path in (self.prefix / "include/esdp").iterdir()))
        in_c = sorted(path.name for path in (RUNFILES / "api/sys").glob("*.h"))
        self.assertEqual(in_c, sorted(path.name for path in (self.prefix / "include/sys").iterdir()))
        source = self.folder / "all.cc"
        source.write_text("".join(f"#include <esdp/{name}>\n" for name in headers))
        run("g++", "-fsyntax-only", source, *self.flags("--cflags", "esdp"))

    def test_the_shared_libraries_show_the_public_classes_and_nothing_else(self):
        for library in LIBRARIES:
            with self.subTest(library):
                self.check_symbols(self.prefix / "lib" / library)

    def check_symbols(self, library):
        shown = run("nm", "-D", "--defined-only", "--demangle", library).stdout.splitlines()
        ours = [line.split(" ", 2)[2] for line in shown if re.match(r"\S+ [A-Z] ", line)]
        # Strings are the standard library's, which every program shares.
        ours = [name for name in ours if not name.startswith("std::") and name != "ESDP_0.1"]
        self.assertGreater(len(ours), 60)
        others = [name for name in ours if not re.match(CLASSES + r"|esdp::(ToString|DetailOf)\(", name)]
        self.assertEqual([], others)
        self.assertTrue(all(name.endswith("@@ESDP_0.1") for name in ours), ours)

    def test_the_shared_libraries_lack_nothing(self):
        for library in LIBRARIES:
            self.assertNotIn("undefined symbol", run("ldd", "-r", self.prefix / "lib" / library).stdout)

    def page(self, name):
        return self.prefix / f"share/man/man{name[-1]}" / name

    def test_every_man_page_is_there_without_faults(self):
        self.assertIn("esdp.7", PAGES)
        installed = (self.prefix / "share/man").glob("*/*")
        self.assertEqual([self.page(name) for name in PAGES], sorted(installed, key=lambda path: path.name))
        for name in PAGES:
            with self.subTest(name):
                told = run(
                    "man", "--warnings", "-E", "UTF-8", "-l", self.page(name), env=dict(os.environ, LC_ALL="C.UTF-8")
                )
                self.assertEqual("", told.stderr)
                self.assertIn(f"{name[:-2].upper()}({name[-1]})", told.stdout)

    def test_every_tool_is_there_with_a_man_page(self):
        self.assertEqual(TOOLS, sorted(path.name for path in (self.prefix / "bin").iterdir()))

    def test_man_pages_name_each_other(self):
        for name in PAGES:
            see_also = self.page(name).read_text().split(".SH SEE ALSO")[1]
            named = {f"{page}.{section}" for page, section in re.findall(r"^\.BR (\S+) \((\d)\)", see_also, re.M)}
            self.assertEqual(set(PAGES) - {name}, named & set(PAGES), name)

    def test_the_page_about_the_library_names_every_public_type(self):
        page = self.page("esdp.7").read_text()
        named = set(re.findall(r"\w+", page))
        declared = set()
        for header in HEADERS:
            kinds = re.findall(
                r"^(?:class|struct|enum|enum class) (?:\[\[\w+\]\] )?(\w+)(?: : \w+)? \{", header.read_text(), re.M
            )
            declared |= set(kinds)
        self.assertLessEqual({"Context", "Region", "Slice", "Socket", "EventQueue", "Event", "Task"}, declared)
        self.assertEqual(set(), declared - named)

    def test_the_page_about_the_library_names_every_fabric_and_every_kind_of_error(self):
        page = self.page("esdp.7").read_text()
        transports = re.search(r"enum class Transport : \w+ \{(.*?)\}", (RUNFILES / "api/esdp/operation.h").read_text())
        fabrics = {name.lower() for name in re.findall(r"\bk(\w+)", transports.group(1))} - {"none"} | {"auto"}
        described = page[page.index(".SH FABRICS") : page.index(".SH MEMORY")]
        for fabric in fabrics:
            self.assertRegex(described, rf"(?m)^\.BR? {fabric}\b")
        errors = page[page.index(".SH ERRORS") : page.index(".SH FILES")]
        kinds = re.search(r"enum class ErrorKind.*?\n\};", (RUNFILES / "api/esdp/status.h").read_text(), re.S)
        declared = re.findall(r"^  (k\w+)", kinds.group(0), re.M)
        self.assertGreater(len(declared), 20)
        self.assertEqual(set(), set(declared) - set(re.findall(r"\bk\w+", errors)))

    def test_a_man_page_has_every_option_that_its_tool_has(self):
        for tool in TOOLS:
            usage = run(self.prefix / "bin" / tool, "--help").stdout
            page = (self.prefix / f"share/man/man1/{tool}.1").read_text().replace("\\-", "-")
            options = set(re.findall(r"--[a-z][\w-]*", usage)) | {"--help"}
            self.assertEqual(options, set(re.findall(r"^\.BI? (?:\w+ )?(--[a-z][\w-]*)", page, re.M)))
            self.assertGreater(len(options), 3)

    def test_each_test_bed_that_is_installed_can_be_measured_on(self):
        testbeds = sorted((self.prefix / "share/esdp/testbeds").glob("*.txtpb"))
        self.assertGreater(len(testbeds), 1)
        for testbed in testbeds:
            measured = run(self.prefix / "bin/esdp_perf", "--fabric", "sim", "--testbed", testbed, "--seconds", "0.001")
            self.assertIn("MB/s", measured.stdout)

    def test_it_says_why_it_cannot_install(self):
        self.assertIn("--prefix", run(RUNFILES / "install", code=2).stderr)
        self.assertIn("--bogus", run(RUNFILES / "install", "--bogus", code=2).stderr)
        blocked = self.folder / "file"
        blocked.write_text("")
        result = run(RUNFILES / "install", "--prefix", blocked / "below", "--built", RUNFILES, code=1)
        self.assertIn("cannot be written", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
