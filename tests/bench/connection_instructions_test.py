#!/usr/bin/env python3
"""What it takes to accept a connection does not grow with the number of those that are open."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
LIFE = ROOT / "tests/bench/connection_life"
FEW, MANY = 50, 1000
COUNTED = 20
# Deeper heaps of timers and longer chains are 1.3 %, what a busy machine adds is up to 2 %. A look at each that is open
# is 5 %, of five instructions.
GROWTH = 1.05
ROUNDS = 3  # a table that grows while it is counted, or a wait on a busy machine, is nothing that grows with each


def instructions(opened):
    """In user space, of both ends, for each connection that comes and goes while `opened` are there."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "callgrind.out")
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=%s" % output, "--collect-atstart=no"]
        command += ["--toggle-collect=*ComeAndGo*", str(LIFE), "accept", str(opened), str(COUNTED)]
        subprocess.run(command, capture_output=True, check=True, timeout=240)
        totals = re.search(r"^(?:summary|totals): (\d+)", output.read_text(), re.MULTILINE)
        return int(totals.group(1)) / COUNTED


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
class ConnectionInstructionsTest(unittest.TestCase):
    def test_accepting_costs_the_same_however_many_are_open(self):
        few, many = (min(instructions(opened) for _ in range(ROUNDS)) for opened in (FEW, MANY))
        print("%.0f instructions with %d open, %.0f with %d" % (few, FEW, many, MANY))
        self.assertGreater(few, 10000)
        self.assertLess(many, GROWTH * few)


if __name__ == "__main__":
    unittest.main(verbosity=2)
