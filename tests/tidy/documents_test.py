#!/usr/bin/env python3
"""The documents that are made from the code: each is shown code that it must tell apart."""

import os
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import generated  # noqa: E402
import machines  # noqa: E402
import spec_map  # noqa: E402
from tree import Tree  # noqa: E402

RULES = "# Rules\n\n## 1 One\n\n- **R1.1** First.\n- **R1.2** Second, on\n  two lines.\n"
CODE = "// [R1.1]\nint First() { return 1; }\n\nint Second() {\n  return 2;  // [R1.2]\n}\n"
TESTS = "// R1.1, R1.2\nTEST(OneTest, Holds) {\n}\n"
FILES = {"docs/rules.md": RULES, "impl/a.cc": CODE, "tests/a_test.cc": TESTS}
TABLE = (
    "// The mood of a door [R1.1]: all of it.\n\n#define ESDP_DOOR(name)\n#define ESDP_DOOR_MOVE(from, to, hand)\n\nESDP_DOOR(Open)  // one may\n                 // pass\nESDP_DOOR(Shut)\n"
    "ESDP_DOOR_MOVE(Open, Shut, Push)\n"
)


class GeneratedTest(unittest.TestCase):
    def tree(self, files):
        root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, root)
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        return Tree(root)

    def complaints(self, **changed):
        files = dict(FILES, **{path.replace("__", "/").replace("_dot_", "."): text for path, text in changed.items()})
        return [breach.text for breach in spec_map.every_rule_has_code_and_test(self.tree(files))]

    def test_rules_with_code_and_test_are_complete(self):
        self.assertEqual([], self.complaints())

    def test_a_rule_without_code_or_test_is_found(self):
        self.assertEqual(["R1.1 is named by no code"], self.complaints(impl__a_dot_cc=CODE.replace("[R1.1]", "")))
        self.assertEqual(["R1.2 is named by no test"], self.complaints(tests__a_test_dot_cc=TESTS.replace(", R1.2", "")))

    def test_a_number_that_is_no_rule_is_found_in_code_and_test(self):
        more = CODE + "// [R1.3]\nint Third();\n"
        self.assertEqual(["R1.3 is no rule of docs/rules.md"], self.complaints(impl__a_dot_cc=more))
        self.assertEqual(["R9 is no rule of docs/rules.md"], self.complaints(tests__b_dot_py="# R9\ndef test_b(): pass\n"))

    def test_a_rule_that_is_not_followed_needs_a_reason_and_no_test(self):
        absent = RULES + "\n## Not followed\n\n| rule | why |\n|---|---|\n| R1.1 | no device |\n"
        self.assertIn("R1.1 is said not to be followed, and has code and a test", self.complaints(docs__rules_dot_md=absent))
        untagged = CODE.replace("[R1.1]", "")
        self.assertEqual([], self.complaints(docs__rules_dot_md=absent, impl__a_dot_cc=untagged))

    def test_the_map_names_functions_and_cases(self):
        page = spec_map.page(self.tree(FILES))
        self.assertIn("| R1.1 | First ([a.cc](../impl/a.cc)) | OneTest.Holds ([a_test.cc](../tests/a_test.cc)) |", page)
        self.assertIn("| R1.2 | Second ([a.cc](../impl/a.cc)) |", page)

    def test_names_of_members_constants_and_rows_are_found(self):
        header = (
            "class Part {\n public:\n  // [R1.1]\n  int Asked() const;\n  bool held_ = false;  // [R1.2]\n};\n"
            "inline constexpr int kMost = 3;  // [R1.1]\n"
        )
        files = dict(FILES, **{"impl/b.h": header, "impl/c.def": "ESDP_X(Row)  // [R1.2]\n"})
        names = {place.name for places in spec_map.read(self.tree(files)).code.values() for place in places}
        self.assertLessEqual({"Asked", "held_", "kMost", "Row"}, names)

    def test_a_table_of_moves_is_drawn_whole(self):
        page = machines.page(self.tree({"impl/door.def": TABLE}))
        for line in ("## The mood of a door", "| Open | one may pass |", "| Push | Shut |", "    Open --> Shut: Push"):
            self.assertIn(line + "\n", page)

    def test_a_page_that_is_not_current_is_found(self):
        tree = self.tree(dict(FILES, **{"impl/door.def": TABLE}))
        generated.update(tree)
        tree = Tree(tree.root)
        self.assertEqual([], list(generated.generated_documents(tree)))
        with open(os.path.join(tree.root, "impl/door.def"), "a", encoding="utf-8") as file:
            file.write("ESDP_DOOR_MOVE(Shut, Open, Push)\n")
        self.assertEqual([machines.PAGE], [breach.path for breach in generated.generated_documents(Tree(tree.root))])


if __name__ == "__main__":
    unittest.main(verbosity=2)
