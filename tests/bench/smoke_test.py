#!/usr/bin/env python3
"""tests/bench/run works from end to end, for a moment: every comparison gives a row. No time is asserted."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cells
import programs
import report
import serving_cells
import switch_cells

RUNFILES = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
ALONE = "rate,latency,one_processor,blocking,memory,allocations"
BESIDE_IPERF3 = "zcopy,bcopy"

ACCEPT = """
import socket, sys
with socket.create_server((sys.argv[1], 0)) as listener:
    print("port", listener.getsockname()[1], flush=True)
    listener.accept()
"""
# The end of the line of a deviation looks like a percentile.
WRK = """Running 1s test @ http://127.0.0.1:8080/65536
  1 threads and 1 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.20ms    4.10ms  70.00ms   98.99%
    Req/Sec   139.00     12.00   150.00     99.99%
  Latency Distribution
     50%  700.00us
     75%    1.00ms
     90%    1.40ms
     99%    2.31ms
  140 requests in 1.00s, 8.76MB read
Requests/sec:    139.47
Transfer/sec:      8.73MB
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


def bench_here():
    options = {"bin": RUNFILES, "pairs": 1, "seconds": 0.3, "busy": 1.0, "congestion": "", "no_pin": True}
    return cells.Bench(argparse.Namespace(**options))


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
        self.assertEqual(20, len(rows))
        self.check(rows)

    def test_no_operation_allocates_in_steady_state(self):
        allocations = [row for row in self.rows("allocations")]
        self.assertEqual(10, len(allocations))
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

    @unittest.skipUnless(serving_cells.where("nginx") and shutil.which("wrk"), "nginx or wrk is not installed")
    def test_served_files_are_measured_beside_nginx(self):
        result = bench("--json", "--only", "serving", "--file-mib", "2", "--pairs", "1")
        self.assertEqual(0, result.returncode, result.stderr)
        rows = json.loads(result.stdout)["rows"]
        self.assertEqual(12, len(rows))
        for row in rows:
            with self.subTest(row["what"]):
                self.assertGreater(row["median"], 0)
                self.assertIn(row["met"], (True, False, None))
        with tempfile.TemporaryDirectory() as folder:
            results = os.path.join(folder, "results.json")
            with open(results, "w", encoding="utf-8") as file:
                file.write(result.stdout)
            plot = os.path.join(RUNFILES, "tests/bench/serving_plot.py")
            subprocess.run([sys.executable, plot, results, folder], check=True, env=dict(os.environ, HOME=folder))
            drawn = ["serving_connections.png", "serving_connections.svg", "serving_sizes.png", "serving_sizes.svg"]
            # Where matplotlib keeps what it knows of fonts begins with a dot.
            there = sorted(name for name in os.listdir(folder) if not name.startswith("."))
            self.assertEqual(["results.json", *drawn], there)

    @unittest.skipUnless(shutil.which("iperf3") and shutil.which("redis-benchmark"), "iperf3 or redis is not installed")
    def test_programs_that_nobody_changes_are_measured_under_the_switch(self):
        with unittest.mock.patch("switch_cells.IDLE", 10):
            rows = bench_here()._switched()
        self.assertEqual(8, len(rows))
        for row in rows[:-1]:
            with self.subTest(row["what"]):
                self.assertGreater(row["median"], 0)
        self.assertLess(rows[-1]["median"], 0.5, "a processor that is busy all the time has 1")

    @unittest.skipUnless(shutil.which("iperf3"), "iperf3 is not installed")
    def test_the_figure_of_an_unchanged_iperf3_is_drawn(self):
        with unittest.mock.patch("switch_cells.STREAMS", (1,)), unittest.mock.patch("switch_cells.SIZES", (131072,)):
            rows = bench_here()._switched_sizes()
        self.assertEqual(["BCopy", "ZCopy"], [row["series"] for row in rows])
        with tempfile.TemporaryDirectory() as folder:
            results = os.path.join(folder, "results.json")
            with open(results, "w", encoding="utf-8") as file:
                json.dump({"rows": rows}, file)
            plot = os.path.join(RUNFILES, "tests/bench/switch_plot.py")
            subprocess.run([sys.executable, plot, results, folder], check=True, env=dict(os.environ, HOME=folder))
            for name in ("switch_bandwidth.png", "switch_bandwidth.svg", "switch_cpu.png", "switch_cpu.svg"):
                self.assertGreater(os.path.getsize(os.path.join(folder, name)), 1000)

    def test_what_went_by_tcp_under_the_switch_fails_the_measurement(self):
        with tempfile.TemporaryDirectory() as folder:
            switched = switch_cells.Switched(pathlib.Path(folder), "direct")
            line = "number 5 connected: by SDP %d bytes sent, 0 received; by TCP %d and 0\n"
            switched.log.write_text(line % (1000, 0))
            switched.check()
            switched.log.write_text(line % (1000, 0) + line % (0, 500))
            with self.assertRaisesRegex(RuntimeError, "500 by TCP"):
                switched.check()

    def test_the_share_of_a_deviation_is_not_taken_for_a_percentile(self):
        self.assertEqual((140, 139.47, 2310.0), serving_cells.wrk_figures(WRK))

    def test_a_server_that_answered_nothing_is_said(self):
        with self.assertRaisesRegex(AssertionError, "no request ended"):
            serving_cells.wrk_figures(WRK.replace("140 requests", "0 requests"))

    def test_a_peer_that_is_missing_is_named(self):
        with unittest.mock.patch("shutil.which", return_value=None):
            rows = serving_cells.ServingCells()._beside_nginx("curl", "a file", None, None, 1.0, "B/s")
        self.assertEqual([{"what": "a file", "missing": ["nginx", "curl"]}], rows)
        about = {"cpu": "", "cpus": 1, "kernel": "", "congestion": "", "pinned": False, "pairs": 1, "seconds": 1}
        self.assertIn("| a file | not measured: nginx and curl not installed |", report.table(about, rows))

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
