#!/usr/bin/env python3
"""esdp_perf on a simulated test-bed gives what the paper's own harness gives there, where both do the same."""

import json
import os
import pathlib
import subprocess
import unittest

RUNFILES = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
PAPER = RUNFILES / "tests/bench/paper/paper"
PERF = RUNFILES / "tools/esdp_perf/esdp_perf"
TESTBED = RUNFILES / "tools/testbed/infinihost_2005.txtpb"
SIZES = {"4 KB": 4096, "64 KB": 65536, "1 MB": 1 << 20}
# As the harness: twice as many receives as sends, buffers as the test-bed says, 50 us of polling, regions shown whole.
ALIKE = ["--buffers", "24", "--spin", "50", "--region-key", "--seconds", "0.05", "--warm-up", "0.01"]


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def harness():
    """{(size, column): (MB/s, CPU in percent)} of the table that the harness prints."""
    lines = [line.strip("|").split("|") for line in run(PAPER, TESTBED).splitlines()]
    columns = [name.strip() for name in lines[0]]
    points = {}
    for cells in lines[2:]:
        for column, cell in zip(columns[1:], cells[1:]):
            rate, cpu = cell.replace("MB/s", "").replace("%", "").split(",")
            points[cells[0].strip(), column] = (float(rate), float(cpu))
    return points


class PerfTest(unittest.TestCase):
    def measure(self, size, depth, path):
        options = ["--size", size, "--receive-size", size, "--depth", depth, "--receives", max(4, 2 * depth), "--path", path]
        result = json.loads(run(PERF, "--fabric", "sim", "--testbed", TESTBED, "--json", *ALIKE, *options))
        rate = result["bytes_per_second"] / 1e6
        cpu = sum(result["cpu_seconds_per_gb"].values()) / 2 * rate / 1000 * 100
        return rate, cpu

    def test_the_same_points_come_out(self):
        points = harness()
        for name, size in SIZES.items():
            for column, path in (("8 operations, copied", "copy"), ("8 operations, written", "zcopy")):
                with self.subTest("%s %s" % (name, column)):
                    wanted, wanted_cpu = points[name, column]
                    rate, cpu = self.measure(size, 8, path)
                    self.assertAlmostEqual(1, rate / wanted, delta=0.05, msg="%s MB/s for %s" % (rate, wanted))
                    self.assertAlmostEqual(wanted_cpu, cpu, delta=10)


if __name__ == "__main__":
    unittest.main()
