#!/usr/bin/env python3
"""What connections used that have come, talked and gone is given back, but for what may be spared."""

import os
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
LIFE = ROOT / "tests/bench/connection_life"
WAVES, SIZE = 2, 500  # both ends are in the one process
ALL = 1 << 20


def residue(spare):
    """The share of what the process had more at its peak that stays when all connections have gone."""
    command = [str(LIFE), "residue", str(WAVES), str(SIZE), str(spare)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    before, peak, after = map(int, done.stdout.split())
    print("%d KiB before, %d at the peak, %d after, with %d to be spared" % (before, peak, after, spare))
    return (after - before) / (peak - before)


class ResidueTest(unittest.TestCase):
    def test_memory_of_connections_that_are_gone_goes_back_to_the_system(self):
        self.assertLess(residue(256), 0.15)

    def test_what_may_be_spared_stays(self):
        self.assertGreater(residue(ALL), 0.2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
