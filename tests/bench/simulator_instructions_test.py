#!/usr/bin/env python3
"""With no test-bed the simulator is as fast as one that knows no cost model: a program that names none has no code of it, and a
message takes but the few instructions of asking whether there is one."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import instructions

ROOT = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
MESSAGES = ROOT / "tests/bench/simulator_messages"
# Sends of one message each; what the simulator does besides is subtracted.
FEW, MANY = 1000, 3000
# What a send takes inside the simulator, both ways, the digest of its bytes aside; and what it took when every question for a
# model was cut out of it, `host_ != nullptr` and its like made false. Who changes the simulator itself counts both anew.
MOST, WITHOUT = 1746, 1712


def inside_the_simulator(count):
    """Instructions of its own functions, what they call outside of it aside."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "callgrind.out")
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=%s" % output, str(MESSAGES), "count", str(count)]
        subprocess.run(command, capture_output=True, check=True, timeout=240)
        told = subprocess.run(
            ["callgrind_annotate", "--threshold=100", str(output)], capture_output=True, text=True, check=True, timeout=240
        ).stdout
    lines = [line for line in told.splitlines() if "fabric::sim::" in line and "DigestOf" not in line]
    return sum(int(re.match(r"\s*([\d,]+)", line).group(1).replace(",", "")) for line in lines)


def functions():
    listed = subprocess.run(["nm", "--demangle", str(MESSAGES)], capture_output=True, text=True, check=True).stdout
    return [line.split(" ", 2)[-1] for line in listed.splitlines() if re.search(r"^[0-9a-f]+ [TtWw] ", line)]


class SimulatorInstructionsTest(unittest.TestCase):
    def test_a_program_that_names_no_testbed_has_no_code_of_the_cost_model(self):
        named = functions()
        self.assertTrue(any("fabric::sim::" in name for name in named), "the simulator's functions are not listed")
        self.assertEqual([], [name for name in named if "sim::testbed" in name])

    @unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
    @unittest.skipUnless(instructions.is_optimised(ROOT / "tests/bench/core_instructions"), "only an optimised build is counted")
    def test_a_send_takes_what_it_takes_where_there_can_be_none(self):
        each = (inside_the_simulator(MANY) - inside_the_simulator(FEW)) / (MANY - FEW)
        print("%.0f instructions of the simulator a send, %d without, at most %d" % (each, WITHOUT, MOST))
        self.assertGreater(each, WITHOUT / 2, "the simulator was not counted")
        self.assertLessEqual(each, MOST)


if __name__ == "__main__":
    unittest.main(verbosity=2)
