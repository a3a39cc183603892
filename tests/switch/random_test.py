#!/usr/bin/env python3
"""Programs made from seeds, with connections, processes and threads at random, end under the switch as without it. The longer form:
ESDP_SEEDS=FIRST-LAST runs those seeds."""

import os
import subprocess
import sys
import unittest

from support import RUNFILES, SwitchTest

FOLDER = RUNFILES / "tests/switch"
FIRST, LAST = map(int, os.environ.get("ESDP_SEEDS", "1-12").split("-"))


class RandomTest(SwitchTest):
    def said(self, program, seed, steps, environment):
        command = [sys.executable, FOLDER / program, str(seed), str(steps)]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done.stdout.splitlines(), done.stderr, done.returncode

    def check(self, program, steps, by_sdp):
        for seed in range(FIRST, LAST + 1):
            with self.subTest(seed=seed):
                self.log.unlink(missing_ok=True)
                plain = self.said(program, seed, steps, self.plain())
                self.assertEqual((len(plain[0]), *plain[1:]), (steps, "", 0))
                self.assertEqual(self.said(program, seed, steps, self.environment()), plain)
                self.assertGreater(sum(each.sdp for each in self.moved()), by_sdp)

    def test_programs_made_from_seeds_end_as_without_the_switch(self):
        self.check("random_calls.py", 60, 10000)

    def test_single_calls_answer_as_without_the_switch(self):
        self.check("single_calls.py", 100, 1000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
