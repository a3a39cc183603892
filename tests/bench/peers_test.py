#!/usr/bin/env python3
"""tests/bench/peers works for a moment, and what drives a peer reads its output or fails. No time is asserted."""

import json
import os
import shutil
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import peer_cells
import peer_programs

RUNFILES = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
RAW = os.path.join(RUNFILES, "tests/bench/raw_limits")

UCX = """iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
 20000,0.531,114.606,250.068,0.53,2.00,8726,3999
"""
FI = """bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64      2k      =2k      250k        4.14s      0.06    1035.95       0.00
"""
SOCKPERF = "sockperf: ---> percentile 50.000 =   11.576\nsockperf: ---> percentile 25.000 =   11.181\n"
IPERF = """19700101000000,127.0.0.1,38570,127.0.0.1,23480,2,0.0-1.1,145031228,800
19700101000000,127.0.0.1,38566,127.0.0.1,23480,1,0.0-1.0,175308860,1600
"""
# The goals of each peer that are quickest to measure.
GOALS_OF = {"iperf3": "A4", "iperf": "A14", "sockperf": "A12", "ucx_perftest": "A2", "fi_pingpong": "A11"}


def peers(*options):
    command = [sys.executable, os.path.join(RUNFILES, "tests/bench/peers"), "--bin", RUNFILES, "--pairs", "1"]
    command += ["--seconds", "0.1", "--busy", "1", "--ucx-share", "0.01", *options]
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


class DriversTest(unittest.TestCase):
    def test_what_peers_print_is_read(self):
        figures = peer_programs.ucx_figures(UCX, 1000, 3.0)
        self.assertEqual({"value": 2.0 * (1 << 20), "messages": 3999, "latency": 0.531, "cpu": 150.0}, figures)
        self.assertEqual(1035.95, peer_programs.fi_figure(FI))
        self.assertEqual(11.576, peer_programs.sockperf_figure(SOCKPERF))
        self.assertEqual(300, peer_programs.iperf_figures(IPERF, 2)["value"])

    def test_output_without_a_figure_is_an_error(self):
        for read in (
            lambda: peer_programs.ucx_figures(UCX.splitlines()[0], 64, 1.0),
            lambda: peer_programs.fi_figure(FI.splitlines()[0]),
            lambda: peer_programs.sockperf_figure(SOCKPERF.replace("11.576", "0.000").splitlines()[0]),
            lambda: peer_programs.iperf_figures(IPERF.splitlines()[0], 2),
        ):
            with self.assertRaises(RuntimeError):
                read()

    def test_each_raw_limit_moves_bytes(self):
        for what, size in (("memcpy", 65536), ("readv", 65536), ("ring", 65536), ("ring", 64), ("spin", 64), ("futex", 64), ("pin", 65536)):
            with self.subTest(what):
                result = peer_programs.raw(RAW, 0.05, what, size, (None, None) if (os.cpu_count() or 1) > 1 else (0, 0))
                self.assertGreater(result["value"], 0)
                self.assertAlmostEqual(result["value"], result["messages"] * size, delta=2 * size)

    def test_an_unknown_limit_is_refused(self):
        with self.assertRaises(RuntimeError):
            peer_programs.raw(RAW, 0.05, "warp", 64, (0, 0))

    def test_the_highest_bar_that_holds_is_reached(self):
        cell = peer_cells.Cell("A0", "", None, None, "value", ">=", 1, 2, None)
        self.assertEqual(["nothing", "floor", "goal"], [peer_cells.reached(cell, ratio) for ratio in (0.9, 1.0, 9)])
        cell = cell._replace(relation="<=", floor=2, goal=1, moonshot=0.5)
        self.assertEqual(["nothing", "floor", "moonshot"], [peer_cells.reached(cell, ratio) for ratio in (2.1, 2, 0.5)])


class PeersTest(unittest.TestCase):
    def test_each_peer_that_is_here_gives_a_ratio(self):
        goals = [goal for peer, goal in GOALS_OF.items() if shutil.which(peer)] + ["A1", "A7", "A18", "A20", "A21"]
        result = peers("--json", "--only", ",".join(goals))
        self.assertEqual(0, result.returncode, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(set(goals), {row["name"] for row in report["rows"]})
        for row in report["rows"]:
            with self.subTest(row["what"]):
                if "missing" not in row:
                    self.assertGreater(row["median"], 0)
                    self.assertGreater(row["peer"], 0)
        measured = {row["name"] for row in report["rows"] if "missing" not in row}
        self.assertLessEqual(set(goals), measured)

    def test_a_peer_that_is_missing_is_named_in_its_row(self):
        with unittest.mock.patch("shutil.which", return_value=None):
            self.assertIn("missing", peer_programs.versions()["sockperf"])
            with self.assertRaisesRegex(peer_programs.Missing, "sockperf is not installed: apt-get install sockperf"):
                peer_programs.require("sockperf")

    def test_an_unknown_goal_is_refused_by_name(self):
        result = peers("--only", "Z9")
        self.assertNotEqual(0, result.returncode)
        self.assertIn("no such goal: Z9", result.stderr)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main(verbosity=2)
