#!/usr/bin/env python3
"""Programs made from seeds, with connections, processes and threads at random, end under the switch as without it. The longer form:
ESDP_SEEDS=FIRST-LAST runs those seeds."""

import os
import subprocess
import sys
import unittest

from support import RUNFILES, SwitchTest

PROGRAM = RUNFILES / "tests/switch/random_calls.py"
FIRST, LAST = map(int, os.environ.get("ESDP_SEEDS", "1-12").split("-"))
STEPS = 60


class RandomTest(SwitchTest):
    def said(self, seed, environment):
        command = [sys.executable, PROGRAM, str(seed), str(STEPS)]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done.stdout.splitlines(), done.stderr, done.returncode

    def test_programs_made_from_seeds_end_as_without_the_switch(self):
        for seed in range(FIRST, LAST + 1):
            with self.subTest(seed=seed):
                self.log.unlink(missing_ok=True)
                plain = self.said(seed, self.plain())
                self.assertEqual((len(plain[0]), *plain[1:]), (STEPS, "", 0))
                self.assertEqual(self.said(seed, self.environment()), plain)
                self.assertGreater(sum(each.sdp for each in self.moved()), 10000, "by SDP")


if __name__ == "__main__":
    unittest.main(verbosity=2)
