#!/usr/bin/env python3
"""Instructions in user space of a message of 64 bytes, in the parts that a program sees: Send, arrival, Recv."""

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
PERF = ROOT / "tools/esdp_perf/esdp_perf"
# Rounds of a ping-pong; what the program does besides is subtracted. Both sides spin: on a busy machine a round takes as long
# as it takes until each has had a processor. With fewer rounds a count is 20 instructions off now and then.
FEW, MANY, SIZE = 50, 850, 64
TRIES = 5

# What is counted and the most it may take, qpip's part included; lower a number when the count has fallen. An arrival is
# what is done with the completions that the fabric reports: of the message, and of the Send before it.
PARTS = {
    "Send": ("esdp::Socket::Send(*", 2830),
    "arrival": ("esdp::provider::Driver::FeedCompletion(*", 1832),
    "Recv": ("esdp::Socket::Recv(*", 1160),
}


def inside(function, rounds):
    """All instructions of the asking side inside `function`."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "callgrind.out")
        count = ["valgrind", "--tool=callgrind", "--callgrind-out-file=%s" % output, "--collect-atstart=no"]
        with subprocess.Popen([str(PERF), "--server", "--sessions", "1"], stdout=subprocess.PIPE, text=True) as server:
            try:
                port = re.search(r":(\d+)", server.stdout.readline()).group(1)
                asking = [str(PERF), "--connect", "127.0.0.1", "--port", port, "--mode", "latency", "--progress", "manual"]
                asking += ["--size", str(SIZE), "--bytes", str(rounds * SIZE), "--quiet"]
                subprocess.run(count + ["--toggle-collect=" + function] + asking, capture_output=True, check=True, timeout=120)
                server.communicate(timeout=60)
            finally:
                server.kill()  # of no client it would wait for ever
        return int(re.search(r"^(?:summary|totals): (\d+)", output.read_text(), re.MULTILINE).group(1))


def of_each_round(function, most):
    """The least that was counted. A side that waits long for a processor acknowledges by a message of its own, which adds to
    the count: so what is above `most` is counted again."""
    few, many = [], []
    for _ in range(TRIES):
        few.append(inside(function, FEW))
        many.append(inside(function, MANY))
        each = (min(many) - min(few)) / (MANY - FEW)
        if each <= most:
            break
    return each


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
@unittest.skipUnless(instructions.is_optimised(ROOT / "tests/bench/core_instructions"), "only an optimised build is counted")
class MessageInstructionsTest(unittest.TestCase):
    def test_no_part_of_a_small_message_takes_more_than_it_did(self):
        for part, (function, most) in PARTS.items():
            each = of_each_round(function, most)
            print("%-8s %6.0f instructions, at most %d" % (part, each, most))
            with self.subTest(part=part):
                self.assertGreater(each, 0)
                self.assertLessEqual(each, most)


if __name__ == "__main__":
    unittest.main(verbosity=2)
