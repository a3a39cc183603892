#!/usr/bin/env python3
"""docs/api says what the headers say: each call, member, value and error, tried on planted ones and on the real ones."""

import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import api_headers
import api_reference

ROOT = os.environ.get("TEST_SRCDIR", "") and os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
ROOT = pathlib.Path(ROOT or os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")))

HEADER = """
namespace esdp {
class State;
inline constexpr int kMany = 64 * 1024;
enum class ErrorKind : int {
  kNone = 0,
  kBusy,  // FailedPrecondition, EBUSY: wait
};
enum class Mood { kGood, kBad };  // and no more
struct Options {
  int depth = 256;  // events
  std::function<void(int)> log = {};
};
const char* ToString(Mood mood);
class Door {
 public:
  Door() = default;
  ~Door();
  bool open() const { return state_ != nullptr; }
  // FailedPrecondition (kBusy) while somebody stands in it.
  int Shut(const Options& options = {}, int times = 1);
 private:
  int hinges_ = 2;
  int Oil();
  State* state_;
};
}  // namespace esdp
"""
PAGE = """# Door

| constant | value | meaning |
|---|---|---|
| `kMany` | `64 * 1024` | many |

## Door

### open

    bool open() const;

### Shut

    int Shut(const Options& options = {},
        int times = 1);

| error | when |
|---|---|
| `kBusy` | somebody stands in it |

## Options

| member | default | meaning |
|---|---|---|
| `depth` | `256` | events |
| `log` | `{}` | where to |

## Mood

| value | meaning |
|---|---|
| `kGood` | good |
| `kBad` | bad |

### ToString

    const char* ToString(Mood mood);
"""
ERRORS = """# Errors

## ErrorKind

| kind | code | errno | what to do |
|---|---|---|---|
| `kNone` | OK | - | nothing |
| `kBusy` | FailedPrecondition | EBUSY | wait |
"""


class PlantedTest(unittest.TestCase):
    def complaints(self, header=HEADER, page=PAGE):
        comparison = api_reference.Comparison({"door.h": header}, {"door.md": page, "status.md": ERRORS})
        return "\n".join(comparison.complaints())

    def test_pages_that_say_the_same_are_accepted(self):
        self.assertEqual("", self.complaints())

    def test_a_call_without_an_entry_is_found(self):
        self.assertIn("Paint", self.complaints(header=HEADER.replace(" private:", "  void Paint();\n private:")))

    def test_an_entry_without_a_call_is_found(self):
        self.assertIn("Shut", self.complaints(header=HEADER.replace("int Shut", "int Close")))

    def test_another_signature_is_found(self):
        self.assertIn("Shut", self.complaints(page=PAGE.replace("int times = 1", "int times = 2")))

    def test_a_free_function_without_an_entry_is_found(self):
        self.assertIn("Knock", self.complaints(header=HEADER.replace("class Door {", "int Knock(int times);\nclass Door {")))

    def test_a_missing_member_and_another_default_are_found(self):
        wider = HEADER.replace("int depth", "int width = 1;\n  int depth")
        self.assertIn("Options::width", self.complaints(header=wider))
        self.assertIn("Options::depth is 256", self.complaints(page=PAGE.replace("`256`", "`128`")))
        self.assertIn("has no height", self.complaints(page=PAGE.replace("| `log`", "| `height` | | high |\n| `log`")))

    def test_a_missing_value_and_an_unknown_one_are_found(self):
        self.assertIn("Mood::kSad", self.complaints(header=HEADER.replace("kBad }", "kBad, kSad }")))
        self.assertIn("has no kSad", self.complaints(page=PAGE.replace("| `kBad`", "| `kSad` | sad |\n| `kBad`")))

    def test_a_member_or_value_that_is_not_explained_is_found(self):
        self.assertIn("kGood says nothing", self.complaints(page=PAGE.replace("| good |", "| |")))

    def test_an_error_that_the_entry_leaves_out_is_found(self):
        without = PAGE.replace("| `kBusy` | somebody stands in it |\n", "")
        self.assertIn("Shut may answer kBusy", self.complaints(page=without))
        self.assertIn("Shut may answer FailedPrecondition", self.complaints(page=without))
        self.assertIn("no call or event tells of kBusy", self.complaints(page=without))

    def test_an_error_that_there_is_not_is_found(self):
        self.assertIn("kLazy", self.complaints(page=PAGE.replace("| `kBusy`", "| `kLazy` | x |\n| `kBusy`")))

    def test_a_type_without_a_section_is_found(self):
        locked = HEADER.replace("class Door {", "struct Lock {\n  int keys = 1;\n};\nclass Door {")
        self.assertIn("Lock has no section", self.complaints(header=locked))

    def test_a_constant_with_another_value_is_found(self):
        self.assertIn("kMany", self.complaints(header=HEADER.replace("64 * 1024", "32 * 1024")))


class ReferenceTest(unittest.TestCase):
    def setUp(self):
        headers = sorted((ROOT / "api/esdp").glob("*.h"))
        # What a header is made of, and says is not for programs, has no page.
        headers = [path for path in headers if not path.stem.endswith(("_internal", "_inline"))]
        self.headers = {path.name: path.read_text() for path in headers}
        pages = sorted((ROOT / "docs/api").glob("*.md"))
        self.pages = {"docs/api/" + path.name: path.read_text() for path in pages}
        self.comparison = api_reference.Comparison(self.headers, self.pages)

    def test_the_pages_say_what_the_headers_say(self):
        self.assertEqual([], list(self.comparison.complaints()))

    def test_the_headers_were_read(self):
        for name in ("Context", "Region", "Slice", "EventQueue", "Socket", "Event", "OpId", "ContextOptions", "SocketStats"):
            self.assertIn(name, self.comparison.types)
        self.assertGreater(len(self.comparison.types["Socket"].calls()), 20)
        self.assertGreater(len(self.comparison.types["SocketStats"].members()), 25)

    def test_every_kind_has_the_code_and_the_errno_of_the_header(self):
        wanted = api_reference.kinds_in_header(self.headers["status.h"])
        self.assertEqual(self.comparison.kinds - {"kNone"}, set(wanted))
        for row in self.comparison.sections["ErrorKind"].own.rows:
            kind = row[0].strip("`")
            if kind != "kNone":
                self.assertEqual(wanted[kind], (row[1], re.findall(r"E[A-Z]+", row[2])), kind)

    def test_the_contract_of_completion_is_that_of_the_header(self):
        rules = re.findall(r"^//  +(\d+)  ", self.headers["socket.h"], re.M)
        self.assertEqual(rules, re.findall(r"^(\d+)\. ", self.pages["docs/api/socket.md"], re.M))

    def test_no_header_has_a_line_that_the_reader_takes_for_nothing(self):
        """What looks like a call anywhere in a header is one that was read, a special member, or private."""
        for name, text in self.headers.items():
            text = re.sub(r" private:.*?\n};", "", re.sub(r"//.*", "", text), flags=re.S)
            types, functions, _ = api_headers.read(text)
            classes = [found for found in types.values() if found.kind != "enum"]
            read = {api_headers.name_of(call) for found in classes for call in found.calls()}
            read |= {api_headers.name_of(call) for call in functions}
            special = set(types) | {"void", "operator", "co_await", "static_assert"}
            calls = set(re.findall(r"^(?:  )?(?:[\w:<>,&*]+ )+[*&]?(\w+)\(", text, re.M))
            self.assertEqual(set(), {call for call in calls if call not in read | special}, name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
