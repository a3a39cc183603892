#!/usr/bin/env python3
"""esdp_perf on a simulated test-bed: every mode, each byte checked, and the same figures each time."""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../programs"))

from programs import RUNFILES, ProgramTest

ESDP_PERF = os.path.join(RUNFILES, "tools/esdp_perf/esdp_perf")
OF_2005 = os.path.join(RUNFILES, "tools/testbed/infinihost_2005.txtpb")
OF_2025 = os.path.join(RUNFILES, "tools/testbed/connectx_2025.txtpb")
BUS = 1385e6  # bytes a second, of 2005
LINK = 25e9  # of 2025


class SimulatedTest(ProgramTest):
    def run_on(self, testbed, *options, code=0):
        return self.run_program(ESDP_PERF, "--fabric", "sim", "--testbed", testbed, *options, code=code)

    def measure(self, testbed, *options):
        return json.loads(self.run_on(testbed, "--json", *options))

    def test_every_byte_arrives_each_way_and_on_either_path(self):
        for path in ("copy", "zcopy"):
            for way, bytes_wanted in (("send", 4 << 20), ("receive", 4 << 20), ("both", 8 << 20)):
                with self.subTest("%s %s" % (path, way)):
                    options = ("--direction", way, "--connections", "2", "--bytes", "2M", "--size", "100001", "--path", path)
                    result = self.measure(OF_2005, "--verify", *options)
                    self.assertEqual(bytes_wanted, result["bytes"])
                    self.assertEqual("sim", result["transport"])
                    self.assertEqual(bytes_wanted if path == "zcopy" else 0, result["zero_copy_bytes"])

    def test_nothing_is_faster_than_the_test_bed(self):
        for testbed, limit in ((OF_2005, BUS), (OF_2025, LINK)):
            rate = self.measure(testbed, "--size", "1M", "--path", "zcopy", "--region-key", "--seconds", "0.005")["bytes_per_second"]
            self.assertLess(rate, 1.01 * limit)
            self.assertGreater(rate, 0.9 * limit)

    def test_latency_and_rate(self):
        times = self.measure(OF_2005, "--mode", "latency", "--bytes", "6400", "--verify")["latency_us"]
        self.assertEqual(100, times["samples"])
        self.assertGreater(times["min"], 2 * 5.5)  # the way of a short message, there and back
        self.assertLess(times["max"], 200)
        spinning = self.measure(OF_2005, "--mode", "latency", "--bytes", "6400", "--progress", "manual")["latency_us"]
        self.assertLess(spinning["p50"], times["p50"])  # no interrupt, no wake
        small = self.measure(OF_2005, "--mode", "rate", "--bytes", "64000", "--verify")
        self.assertEqual(64000, small["bytes"])
        self.assertGreater(small["messages_per_second"], 0)

    def test_no_number_of_sends_outstanding_waits_for_a_timer(self):
        for depth in range(1, 13):
            with self.subTest(depth=depth):
                options = ("--size", "64K", "--depth", str(depth), "--path", "zcopy", "--seconds", "0.05")
                self.assertGreater(self.measure(OF_2025, *options)["bytes_per_second"], 1e9)

    def test_a_thread_that_never_sleeps_takes_its_processor_whole(self):
        result = self.measure(OF_2005, "--size", "1M", "--path", "zcopy", "--progress", "manual")
        cpu = result["cpu_seconds_per_gb"]["client"] * result["bytes_per_second"] / 1e9
        self.assertAlmostEqual(1, cpu, delta=0.05)

    def test_the_same_figures_each_time(self):
        for options in (("--path", "copy,zcopy,threshold", "--size", "32K"), ("--mode", "latency"), ("--mode", "rate")):
            with self.subTest(options):
                first = self.run_on(OF_2005, "--json", "--seconds", "0.02", *options)
                self.assertEqual(first, self.run_on(OF_2005, "--json", "--seconds", "0.02", *options))

    def test_seconds_and_warm_up_are_of_virtual_time(self):
        result = self.measure(OF_2005, "--seconds", "0.03", "--warm-up", "0.01", "--size", "64K")
        self.assertAlmostEqual(0.03, result["seconds"], delta=0.003)

    def test_what_is_wrong_with_a_file_is_said_with_its_line(self):
        with open(OF_2005, encoding="utf-8") as file:
            text = file.read()
        with tempfile.TemporaryDirectory() as folder:
            mine = os.path.join(folder, "mine.txtpb")
            for what, wanted in (
                (text.replace("value: 1890", "value: -3"), r"mine.txtpb:\d+: machine.memory_mb_s is negative"),
                (text.replace('"MB/s"', '"Gb/s"', 1), r"mine.txtpb:\d+: machine.memory_mb_s is in MB/s"),
                (text.replace("link {", "wire {"), r"mine.txtpb:\d+:\d+: .*wire"),
                (text[: text.index("link {")], r"mine.txtpb: .*link"),
            ):
                with open(mine, "w", encoding="utf-8") as file:
                    file.write(what)
                self.run_on(mine, code=1)
                self.assertRegex(self.complaints, wanted)
        self.run_on("no/such.txtpb", code=1)
        self.assertIn("no/such.txtpb", self.complaints)

    def test_what_has_no_place_there_is_refused(self):
        self.run_on(OF_2005, "--file", "data", code=2)
        self.assertIn("another fabric", self.complaints)
        self.run_program(ESDP_PERF, "--fabric", "sim", code=2)
        self.assertIn("--testbed", self.complaints)


if __name__ == "__main__":
    unittest.main()
