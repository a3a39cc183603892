#!/usr/bin/env python3
"""What the other tests here take for the word of a program is what it said."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from suite import Program


class ProgramTest(unittest.TestCase):
    def test_nothing_that_a_program_says_is_lost_where_it_is_read_meanwhile(self):
        program = Program("/bin/sh", "-c", "for i in $(seq 100000); do echo line $i >&2; done; echo '{}'")
        self.addCleanup(program.kill)
        while program.process.poll() is None:
            self.assertLess(len(program.complained()), 2_000_000)
        self.assertEqual(["line %d" % i for i in range(1, 100_001)], program.complained().splitlines())


if __name__ == "__main__":
    unittest.main(verbosity=2)
