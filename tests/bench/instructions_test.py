#!/usr/bin/env python3
"""The protocol core stays within its instructions for each message, checks of its invariants included."""

import os
import pathlib
import shutil
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import instructions

HERE = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"] / "tests/bench"
BINARY = HERE / "core_instructions"


def limits():
    """{(scenario, side): most}"""
    lines = [line.split() for line in (HERE / "instructions.txt").read_text().splitlines() if line[:1] not in ("#", "")]
    return {(scenario, side): int(most) for scenario, side, most in lines}


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
@unittest.skipUnless(instructions.is_optimised(BINARY), "only an optimised build is counted")
class InstructionsTest(unittest.TestCase):
    def test_each_kind_of_message_stays_within_its_limit_on_both_sides(self):
        bounds = limits()
        self.assertEqual(6, len(bounds))
        for scenario in sorted({scenario for scenario, _ in bounds}):
            for side, count in instructions.per_message(BINARY, scenario).items():
                print("%-12s %-10s %7.0f of %d" % (scenario, side, count, bounds[scenario, side]))
                with self.subTest(message=scenario, side=side):
                    self.assertGreater(count, 100, "the steps were not counted")
                    self.assertLessEqual(count, bounds[scenario, side])


if __name__ == "__main__":
    unittest.main(verbosity=2)
