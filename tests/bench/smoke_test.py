#!/usr/bin/env python3
"""tests/bench/run works from end to end, for a moment: every comparison gives a row. No time is asserted."""

import json
import os
import shutil
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import programs

RUNFILES = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
ALONE = "rate,latency,one_processor,blocking,memory,allocations"
BESIDE_IPERF3 = "zcopy,bcopy"

ACCEPT = """
import socket, sys
with socket.create_server((sys.argv[1], 0)) as listener:
    print("port", listener.getsockname()[1], flush=True)
    listener.accept()
"""
# Prints the seconds that it takes until the peer has answered.
CONNECT = """
import socket, sys, time
began = time.monotonic()
socket.create_connection((sys.argv[1], int(sys.argv[2])))
print(time.monotonic() - began)
"""


def bench(*options):
    command = [os.path.join(RUNFILES, "tests/bench/run"), "--bin", RUNFILES, "--pairs", "2", "--seconds", "0.3", "--busy", "1"]
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    return subprocess.run(command + list(options), capture_output=True, text=True, check=False, env=environment)


class BenchTest(unittest.TestCase):
    def rows(self, names):
        result = bench("--json", "--only", names)
        self.assertEqual(0, result.returncode, result.stderr)
        return json.loads(result.stdout)["rows"]

    def check(self, rows):
        for row in rows:
            with self.subTest(row["what"]):
                self.assertGreaterEqual(row["most"], row["median"])
                self.assertGreaterEqual(row["median"], row["least"])
                self.assertIn(row["met"], (True, False))

    def test_our_own_figures_are_measured(self):
        rows = self.rows(ALONE)
        self.assertEqual(14, len(rows))
        self.check(rows)

    def test_no_operation_allocates_in_steady_state(self):
        allocations = [row for row in self.rows("allocations")]
        self.assertEqual(4, len(allocations))
        for row in allocations:
            self.assertEqual(0, row["median"], row["what"])

    @unittest.skipUnless(shutil.which("iperf3"), "iperf3 is not installed")
    def test_we_are_measured_beside_iperf3(self):
        rows = self.rows(BESIDE_IPERF3)
        self.assertEqual(8, len(rows))
        self.check(rows)
        for row in rows:
            self.assertGreater(row["peer"], 0)
            self.assertGreater(row["median"], 0)

    def test_files_are_measured_beside_memory_and_fio(self):
        result = bench("--json", "--only", "files", "--file-mib", "16")
        self.assertEqual(0, result.returncode, result.stderr)
        rows = json.loads(result.stdout)["rows"]
        self.assertEqual(6, len(rows))
        self.check(rows)
        for row in rows:
            self.assertGreater(row["peer"], 0, row["what"])

    def test_the_table_has_a_line_for_each_figure(self):
        result = bench("--only", "latency")
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertIn("| 64 B ping-pong", result.stdout)

    @unittest.skipIf(programs.why_no_long_path(), programs.why_no_long_path())
    def test_a_long_path_takes_its_time_and_leaves_nothing_behind(self):
        with programs.LongPath(os.path.join(RUNFILES, "tests/bench/delay_path"), 40) as path:
            server = programs.Program([sys.executable, "-c", ACCEPT, path.address], None, path.server)
            port = server.await_line(r"port (\d+)").group(1)
            client = programs.Program([sys.executable, "-c", CONNECT, path.address, port], None, path.client)
            self.assertGreaterEqual(float(client.finish(0)[0]), 0.04)
            server.finish(0)
            pid = path.program.process.pid
        self.assertFalse(os.path.exists("/proc/%d" % pid))

    def test_who_may_not_make_a_long_path_is_told_why(self):
        with unittest.mock.patch("os.geteuid", return_value=1000):
            self.assertEqual("only root may make network namespaces", programs.why_no_long_path())

    def test_an_unknown_comparison_is_refused_by_name(self):
        result = bench("--only", "warp")
        self.assertNotEqual(0, result.returncode)
        self.assertIn("no such comparison: warp", result.stderr)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main(verbosity=2)
