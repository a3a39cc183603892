#!/usr/bin/env python3
"""Each house rule must be able to fail: every one is shown a tree that keeps it and one that breaks it."""

import os
import shutil
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import compiled  # noqa: E402
import includes  # noqa: E402
import names  # noqa: E402
import precompiled  # noqa: E402
import shape  # noqa: E402
from tree import Tree, code_only  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        for name in (".clang-format", ".clang-tidy"):
            shutil.copy(os.path.join(ROOT, name), self.root)

    def broken(self, rule, files):
        """The (path, line) pairs where the rule finds the files broken."""
        for path, text in files.items():
            full = os.path.join(self.root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        return [(breach.path, breach.line) for breach in rule(Tree(self.root))]

    def test_a_header_of_201_lines_and_a_source_of_401_are_too_long(self):
        files = {
            "impl/a.h": "\n" * 200,
            "impl/b.h": "\n" * 201,
            "impl/a.cc": "\n" * 400,
            "impl/b.cc": "\n" * 401,
            "tests/c_test.cc": "\n" * 900,
        }
        self.assertEqual(self.broken(shape.file_sizes, files), [("impl/b.cc", 401), ("impl/b.h", 201)])

    def test_a_function_of_61_lines_is_too_long(self):
        def function(lines):
            return "void F() {\n" + "  G();\n" * (lines - 2) + "}\n"

        files = {"impl/a.cc": function(60), "impl/b.cc": "\n" + function(61)}
        self.assertEqual(self.broken(shape.function_sizes, files), [("impl/b.cc", 2)])

    def test_a_guard_is_spelled_as_the_path(self):
        def header(guard):
            return f"// Why.\n#ifndef {guard}\n#define {guard}\n#endif\n"

        files = {
            "impl/base/a.h": header("ESDP_IMPL_BASE_A_H_"),
            "api/esdp/b.h": header("ESDP_B_H_"),
            "impl/base/c.h": header("ESDP_BASE_C_H_"),
            "impl/base/d.h": "#pragma once\n",
        }
        self.assertEqual(self.broken(shape.include_guards, files), [("impl/base/c.h", 1), ("impl/base/d.h", 1)])

    def test_each_part_of_a_contract_begins_a_line(self):
        files = {
            "impl/a.h": "//   Owns:     nothing.\n//   Threads:  any.\n",
            "impl/b.h": "//   Owns:     nothing.   Threads:  any.\n",
            "impl/c.h": "//   Threads:  any\n//   of them. Blocks:   never.\nint Units: 3;\n",
        }
        self.assertEqual(self.broken(shape.contract_blocks, files), [("impl/b.h", 1), ("impl/c.h", 2)])

    def test_a_document_has_one_title_in_its_first_line(self):
        files = {
            "a.md": "# A\n\n```sh\n# not a title\n```\n\n## Part\n",
            "b.md": "text\n",
            "c.md": "# C\n\n# D\n",
        }
        self.assertEqual(self.broken(shape.one_title, files), [("b.md", 1), ("c.md", 3)])

    def test_a_link_into_the_repository_leads_to_a_file(self):
        files = {"docs/a.md": "# A\n[b](b.md#part) [c](c.md) [w](https://example.org/)\n", "docs/b.md": "# B\n"}
        self.assertEqual(self.broken(shape.links_lead_somewhere, files), [("docs/a.md", 2)])

    def test_a_marker_of_unfinished_work_is_found(self):
        files = {"impl/a.cc": "int a;\n// TO" "DO later\n"}
        self.assertEqual(self.broken(shape.no_markers, files), [("impl/a.cc", 2)])

    def test_a_source_that_no_build_file_names_is_dead(self):
        files = {
            "impl/BUILD.bazel": 'srcs = ["a.cc", "deep/c.cc"]\n',
            "impl/a.cc": "",
            "impl/b.cc": "",
            "impl/deep/c.cc": "",
            "other/d.h": "",
        }
        self.assertEqual(self.broken(shape.no_dead_files, files), [("impl/b.cc", 1), ("other/d.h", 1)])

    def test_every_banned_name_is_caught(self):
        calls = {
            "rand": "int a = rand();",
            "random_device": "std::random_device device;",
            "clock": "auto now = std::chrono::steady_clock::now();",
            "time": "auto now = time(nullptr);",
            "sleep": "std::this_thread::sleep_for(span);",
            "usleep": "usleep(1);",
            "abort": "std::abort();",
            "exit": "if (bad) exit(1);",
            "assert": "assert(good);",
            "memcpy": "std::memcpy(to, from, 1);",
            "print": 'std::cerr << "bad";',
            "printf": 'fprintf(stderr, "bad");',
            "environment": 'getenv("HOME");',
            "signal": "signal(SIGPIPE, SIG_IGN);",
            "mutex": "absl::Mutex mutex;",
            "using": "using namespace std;",
            "throw": "throw 1;",
            "private": "#define private public",
        }
        files = {f"impl/sdp/{name}.cc": f"\n{call}\n" for name, call in calls.items()}
        found = {path for path, _ in self.broken(names.banned_names, files)}
        self.assertEqual(found, set(files))

    def test_names_that_only_look_like_banned_ones_are_left_alone(self):
        text = (
            "// abort() is what we never do; see memcpy(a, b, c).\n"
            'const char* text = "exit(1)";\n'
            "peer.abort(); socket->exit(0); const Clock& clock() const; Random& random();\n"
            "int value = 1'000; deadline_time(now); message.time();\n"
        )
        self.assertEqual(self.broken(names.banned_names, {"impl/sdp/a.cc": text}), [])

    def test_the_one_place_for_a_banned_name_may_use_it(self):
        files = {
            "impl/base/clock.cc": "std::chrono::steady_clock::now();\n",
            "impl/base/bytes.h": "std::memcpy(a, b, 1);\n",
        }
        self.assertEqual(self.broken(names.banned_names, files), [])

    def test_each_room_includes_only_what_the_table_grants_it(self):
        files = {
            "impl/sdp/a.cc": '#include "impl/fabric/port.h"\n',
            "impl/sdp/b.cc": "#include <unistd.h>\n",
            "impl/sdp/c.cc": "#include <thread>\n",
            "impl/sdp/d.cc": '#include "absl/status/status.h"\n',
            "impl/sdp/e.cc": '#include "impl/base/clock.h"\n',
            "impl/sdp/wire/f.cc": '#include "impl/sdp/interface/input.h"\n',
            "impl/fabric/g.cc": '#include "impl/sdp/interface/input.h"\n',
            "impl/fabric/qpip/h.cc": '#include "impl/fabric/sim/world.h"\n',
            "impl/fabric/qpip/mpa.cc": '#include "impl/fabric/port.h"\n',
            "impl/provider/i.cc": '#include "impl/fabric/qpip/fabric.h"\n',
            "impl/sockets/j.cc": '#include "impl/fabric/port.h"\n',
            "impl/sockets/k.cc": "#include <sys/socket.h>\n",
            "api/esdp/l.h": '#include "impl/base/bytes.h"\n',
            "api/esdp/m.h": "#include <poll.h>\n",
            "samples/n.cc": '#include "impl/base/bytes.h"\n',
            "tools/o.cc": '#include "samples/arguments.h"\n',
            "impl/nowhere/p.cc": "\n",
        }
        self.assertEqual(self.broken(includes.include_table, files), [(path, 1) for path in sorted(files)])

    def test_each_room_may_include_what_the_table_grants_it(self):
        files = {
            "impl/sdp/a.cc": '#include "impl/sdp/wire/codec.h"\n#include <vector>\n#include "impl/base/bytes.h"\n',
            "impl/fabric/qpip/b.cc": '#include <sys/socket.h>\n#include "impl/fabric/port.h"\n',
            "impl/fabric/qpip/crc32c.cc": '#include "isa-l.h"\n',
            "impl/provider/c.cc": '#include <thread>\n#include "impl/sdp/interface/input.h"\n',
            "impl/sockets/queue/event_queue.cc": '#include <sys/eventfd.h>\n#include "esdp/event.h"\n',
            "impl/assembly/d.cc": '#include "impl/fabric/qpip/fabric.h"\n',
            "samples/e.cc": '#include "esdp/socket.h"\n#include <sys/epoll.h>\n',
            "tools/f.cc": '#include "tools/g.h"\n#include <openssl/evp.h>\n',
        }
        self.assertEqual(self.broken(includes.include_table, files), [])

    def test_a_header_that_needs_another_does_not_compile_alone(self):
        files = {"impl/a.h": "#pragma once\nstd::size_t a();\n", "impl/b.h": "#pragma once\n#include <cstddef>\n"}
        self.assertEqual(self.broken(compiled.headers_alone, files), [("impl/a.h", 1)])

    def test_a_header_whose_guard_does_not_work_is_found(self):
        self.assertEqual(self.broken(compiled.headers_alone, {"impl/a.h": "struct A {};\n"}), [("impl/a.h", 1)])

    def test_a_header_is_left_to_the_build_where_a_source_that_no_test_is_has_it_first(self):
        broken = "#pragma once\nstd::size_t a();\n"
        files = {"impl/a.h": broken, "impl/b.h": broken, "tests/c.h": broken, "api/d.h": broken}
        files["impl/a.cc"] = '#include "impl/a.h"\n#include "impl/b.h"\n'
        files["tests/c.cc"] = '#include "tests/c.h"\n'
        files["impl/d.cc"] = '// Of d.\n#include "d.h"\n'
        self.assertEqual(self.broken(compiled.headers_alone, files), [("impl/b.h", 1), ("tests/c.h", 1)])

    def test_a_source_includes_what_it_uses_though_it_is_precompiled(self):
        files = {
            "impl/precompiled/standard.h": "#include <memory>\n#include <vector>\n",
            "impl/precompiled/common.h": "#include <vector>\n",
            "impl/a.h": "#include <vector>\n",
            "impl/a.cc": '#include "impl/a.h"\nstd::vector<int> a;\n// std::unique_ptr\n',
            "impl/b.cc": "int b;\nstd::unique_ptr<int> c;\nstd::vector<int> d;\n",
            "tests/c.cc": "std::vector<int> e;\n",
        }
        self.assertEqual(
            self.broken(precompiled.names_what_it_uses, files), [("impl/b.cc", 2), ("impl/b.cc", 3)]
        )

    def test_a_precompiled_header_that_the_rule_does_not_know_is_found(self):
        files = {"impl/precompiled/standard.h": "#include <regex>\n"}
        self.assertEqual(self.broken(precompiled.names_what_it_uses, files), [("impl/precompiled/standard.h", 1)])

    def test_an_unformatted_source_is_found_with_its_line(self):
        files = {"impl/a.cc": "int a;\nint  b;\n", "impl/b.cc": "int a;\n"}
        self.assertEqual(self.broken(compiled.formatted, files), [("impl/a.cc", 2)])

    def test_lint_finds_a_use_after_move(self):
        text = (
            "#include <string>\n#include <utility>\nstd::string F(std::string a) {\n"
            "  std::string b = std::move(a);\n  return a + b;\n}\n"
        )
        self.assertEqual(self.broken(compiled.linted, {"impl/a.cc": text, "impl/b.cc": "int b;\n"}), [("impl/a.cc", 5)])

    def test_lint_looks_at_the_bindings_with_the_headers_of_python(self):
        text = "#include <pybind11/pybind11.h>\nstruct A {\n  ~A() { throw pybind11::value_error(); }\n};\nA a;\n"
        self.assertIn(("bindings/a.cc", 3), self.broken(compiled.linted, {"bindings/a.cc": text}))

    def test_lint_looks_apart_at_sources_whose_local_names_clash(self):
        clash = "namespace { int n; }\nint F%d() { return n; }\n"
        moved = "#include <string>\n#include <utility>\nstd::string G(std::string a) {\n"
        moved += "  std::string b = std::move(a);\n  return a + b;\n}\n"
        files = {"impl/a.cc": clash % 1, "impl/b.cc": clash % 2 + moved, "impl/c.cc": "int c;\n"}
        self.assertEqual(self.broken(compiled.linted, files), [("impl/b.cc", 7)])

    def test_lint_looks_at_several_programs_at_once_and_knows_each_main(self):
        throws = "int main() { throw 1; }\n"
        files = {f"samples/{name}.cc": throws for name in "abcdefghijklmnopqrst"}
        with mock.patch.object(compiled, "_run", wraps=compiled._run) as run:
            self.assertEqual(self.broken(compiled.linted, files), [(path, 1) for path in files])
        tools = [call.args[0][0] for call in run.call_args_list]
        self.assertEqual(tools.count("clang-tidy-14"), 1)

    def test_blanking_keeps_lines_and_include_names(self):
        text = '#include "a/b.h"  // why\n/* one\ntwo */ char c = \'"\'; int n = 1\'000; // "x\n"// text"\n'
        blanked = code_only(text).split("\n")
        self.assertEqual(len(blanked), len(text.split("\n")))
        self.assertEqual(blanked[0].strip(), '#include "a/b.h"')
        self.assertIn("int n = 1'000;", blanked[2])
        self.assertEqual(blanked[3], '""')


if __name__ == "__main__":
    unittest.main(verbosity=2)
