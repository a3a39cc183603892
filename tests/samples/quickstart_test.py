#!/usr/bin/env python3
"""quickstart, with the program that it would build."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs"))

from programs import RUNFILES, ProgramTest


class QuickstartTest(ProgramTest):
    def test_the_quickstart_moves_a_file_both_ways_on_both_paths(self):
        quickstart = os.path.join(RUNFILES, "samples/quickstart")
        with tempfile.TemporaryDirectory() as folder:
            command = (quickstart, "--size", "4M", "--bin", os.path.join(RUNFILES, "tools/esdp_perf"))
            output = self.run_program(*command, temporary=folder)
            self.assertEqual([], os.listdir(folder), "quickstart leaves files behind")
        self.assertEqual(2, len([line for line in output.splitlines() if line.endswith(" copied")]), output)
        self.assertEqual(2, len([line for line in output.splitlines() if line.endswith(" zero-copy")]), output)
        self.assertIn("SHA-256 equal", output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
