#!/usr/bin/env python3
"""esdp_perf in every mode, at small sizes, with each byte checked. No time is asserted."""

import hashlib
import json
import os
import socket
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../programs"))

from programs import RUNFILES, ProgramTest

ESDP_PERF = os.path.join(RUNFILES, "tools/esdp_perf/esdp_perf")


class EsdpPerfTest(ProgramTest):
    def serve(self, *options):
        return self.start(ESDP_PERF, "--server", *options, until=r"port (\d+)$")

    def call(self, port, *options, code=0):
        return self.run_program(ESDP_PERF, "--connect", "127.0.0.1", "--port", port.group(1), *options, code=code)

    def measure(self, *options):
        """One run against a server of its own, as JSON."""
        server, port = self.serve("--sessions", "1")
        result = json.loads(self.call(port, "--json", "--quiet", *options))
        self.finish(server)
        return result

    def moved(self, bytes_wanted, *options):
        result = self.measure("--verify", *options)
        self.assertEqual(bytes_wanted, result["bytes"])
        self.assertTrue(result["verified"])
        self.assertGreater(result["bytes_per_second"], 0)
        return result

    # --- paths ----------------------------------------------------------------------------------------------------

    def test_zero_copy_copies_nothing(self):
        result = self.moved(16 << 20, "--bytes", "16M", "--size", "1M", "--path", "zcopy")
        self.assertEqual(result["bytes"], result["zero_copy_bytes"])
        self.assertEqual({"client": 0, "server": 0}, result["copies_per_byte"])

    def test_copying_copies_each_byte_once_at_the_receiver(self):
        result = self.moved(8 << 20, "--bytes", "8M", "--size", "64K", "--path", "copy")
        self.assertEqual(0, result["zero_copy_bytes"])
        self.assertLessEqual(result["copies_per_byte"]["client"], 1)
        self.assertEqual(1, result["copies_per_byte"]["server"])

    def test_the_threshold_decides(self):
        below = self.moved(1 << 20, "--bytes", "1M", "--size", "32K")
        self.assertEqual(0, below["zero_copy_bytes"])
        above = self.moved(1 << 20, "--bytes", "1M", "--size", "32K", "--threshold", "32K")
        self.assertEqual(1 << 20, above["zero_copy_bytes"])

    def test_sends_of_a_batch_are_all_there_and_in_order(self):
        # Not a multiple of the batch, nor of the size.
        for path in ("copy", "zcopy"):
            with self.subTest(path):
                self.moved(1_000_001, "--bytes", "1000001", "--size", "600", "--depth", "64", "--batch", "32",
                           "--path", path)

    # --- directions, connections, sizes -----------------------------------------------------------------------------

    def test_receives_as_well_as_it_sends(self):
        for path in ("copy", "zcopy"):
            with self.subTest(path):
                self.moved(4 << 20, "--bytes", "4M", "--size", "256K", "--path", path, "--direction", "receive")

    def test_moves_both_ways_at_once(self):
        for path in ("copy", "zcopy"):
            with self.subTest(path):
                self.moved(8 << 20, "--bytes", "4M", "--size", "256K", "--path", path, "--direction", "both")

    def test_many_connections_keep_their_bytes_apart(self):
        self.moved(16 << 20, "--bytes", "1M", "--size", "64K", "--connections", "16", "--path", "zcopy")
        self.moved(8 << 20, "--bytes", "1M", "--size", "4K", "--connections", "8", "--path", "copy")

    def test_a_last_message_may_be_shorter(self):
        for path in ("copy", "zcopy"):
            with self.subTest(path):
                self.moved(1000003, "--bytes", "1000003", "--size", "70001", "--path", path)

    def test_a_receive_may_have_another_size_than_the_send(self):
        self.moved(1 << 20, "--bytes", "1M", "--size", "256K", "--receive-size", "100001", "--path", "zcopy")
        self.moved(1 << 20, "--bytes", "1M", "--size", "10001", "--receive-size", "64K", "--path", "copy")

    def test_manual_progress_moves_the_same_bytes(self):
        for path in ("copy", "zcopy"):
            with self.subTest(path):
                result = self.moved(2 << 20, "--bytes", "2M", "--size", "128K", "--path", path, "--progress", "manual")
                self.assertEqual("manual", result["progress"])

    def test_runs_with_a_checksum_and_a_congestion_control(self):
        self.moved(1 << 20, "--bytes", "1M", "--size", "128K", "--checksum", "--congestion", "reno")

    def test_lends_its_pages(self):
        for more in ((), ("--checksum",)):
            with self.subTest(more):
                self.moved(16 << 20, "--bytes", "16M", "--size", "1M", "--path", "zcopy", "--lend-pages", *more)

    def test_stops_when_its_time_is_over(self):
        result = self.measure("--seconds", "1", "--size", "64K", "--path", "copy")
        # The receiver's clock starts after the sender's: on a busy machine not at once.
        self.assertGreater(result["seconds"], 0.1)
        self.assertGreater(result["bytes"], 0)

    def test_a_warm_up_is_no_part_of_the_figures(self):
        began = time.monotonic()
        result = self.measure("--warm-up", "0.6", "--seconds", "0.3", "--path", "copy", "--direction", "receive")
        self.assertGreater(result["bytes"], 0)
        self.assertGreater(result["seconds"], 0)
        self.assertLessEqual(result["seconds"] + 0.6, time.monotonic() - began)

    def test_as_many_receives_are_in_flight_as_asked(self):
        for path in ("copy", "zcopy"):
            with self.subTest(path):
                options = ("--bytes", "8M", "--size", "256K", "--receive-size", "256K", "--receives", "12", "--path", path)
                self.moved(8 << 20, *options)

    # --- latency and rate -----------------------------------------------------------------------------------------------

    def test_latency_gives_percentiles_in_order(self):
        # Two sides that spin on a busy machine take turns on a processor: milliseconds for a round trip.
        for progress, rounds in (("thread", 1000), ("manual", 100)):
            with self.subTest(progress):
                options = ("--mode", "latency", "--bytes", str(64 * rounds), "--verify", "--progress", progress)
                times = self.measure(*options)["latency_us"]
                self.assertEqual(rounds, times["samples"])
                names = ["min", "p50", "p90", "p99", "p99.9", "max"]
                values = [times[name] for name in names]
                self.assertEqual(sorted(values), values)
                self.assertGreater(values[0], 0)

    def test_small_messages_are_counted(self):
        result = self.moved(640000, "--mode", "rate", "--bytes", "640000", "--progress", "manual")
        self.assertEqual(64, result["size"])
        self.assertGreater(result["messages_per_second"], 0)

    # --- output ---------------------------------------------------------------------------------------------------------

    def test_several_paths_share_one_table(self):
        server, port = self.serve("--sessions", "2")
        table = self.call(port, "--bytes", "1M", "--path", "copy,zcopy", "--quiet")
        self.finish(server)
        self.assertRegex(table, r"(?m)^bandwidth +send +copy .* copied$")
        self.assertRegex(table, r"(?m)^bandwidth +send +zcopy .* zero-copy$")

    def test_tells_how_it_goes_each_second(self):
        _, port = self.serve()
        self.call(port, "--seconds", "1.3")
        # A line can be late, on a busy machine, and then says so.
        self.assertRegex(self.complaints, r"(?m)^ +[1-9]\d* s +\d+\.\d MB/s$")

    # --- files ----------------------------------------------------------------------------------------------------------

    def make_file(self, folder, length):
        path = os.path.join(folder, "data")
        with open(path, "wb") as file:
            file.write(os.urandom(length))
        return path

    def digest(self, path):
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def test_a_file_arrives_at_the_far_end_and_comes_back(self):
        for path, length in (("copy", 3000001), ("zcopy", 3000001), ("zcopy", 1), ("copy", 1 << 20)):
            with self.subTest("%s %d" % (path, length)), tempfile.TemporaryDirectory() as folder:
                far = os.path.join(folder, "far")
                os.mkdir(far)
                server, port = self.serve("--sessions", "2", "--folder", far)
                data = self.make_file(folder, length)
                output = self.call(port, "--file", data, "--direction", "both", "--path", path, "--quiet")
                self.finish(server)
                wanted = self.digest(data)
                self.assertEqual(wanted, self.digest(os.path.join(far, "data")))
                self.assertEqual(wanted, self.digest(data + ".fetched"))
                self.assertEqual(1, output.count("SHA-256 equal on both sides: " + wanted), output)

    def test_a_server_without_a_folder_takes_no_file(self):
        _, port = self.serve()
        with tempfile.TemporaryDirectory() as folder:
            self.call(port, "--file", self.make_file(folder, 10), code=1)
        self.assertIn("--folder", self.complaints)

    def test_a_file_that_the_server_has_not_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            _, port = self.serve("--folder", folder)
            self.call(port, "--file", os.path.join(folder, "nothing"), "--direction", "receive", code=1)
        self.assertIn("nothing", self.complaints)

    # --- trouble --------------------------------------------------------------------------------------------------------

    def test_a_server_survives_garbage_and_goes_on(self):
        _, port = self.serve()
        for garbage in (b"", b"GET / HTTP/1.0\r\n\r\n", b"\0" * 1000):
            with socket.create_connection(("127.0.0.1", int(port.group(1)))) as stranger:
                stranger.sendall(garbage)
        self.call(port, "--bytes", "1M", "--verify", "--quiet")

    def test_a_server_goes_on_after_a_client_was_killed(self):
        _, port = self.serve()
        client, _ = self.start("sh", "-c", "echo up; exec %s --connect 127.0.0.1 --port %s" % (ESDP_PERF, port.group(1)), until="up")
        try:
            client.wait(timeout=0.7)
        except Exception:
            client.kill()
        self.call(port, "--bytes", "1M", "--verify", "--quiet")

    def test_wrong_options_are_refused_with_the_reason(self):
        self.run_program(ESDP_PERF, "--port", "1", "--size", "0", code=2)
        self.assertIn("--size", self.complaints)
        self.run_program(ESDP_PERF, "--bogus", code=2)
        self.assertIn("--bogus", self.complaints)

    def test_help_names_every_option(self):
        usage = self.run_program(ESDP_PERF, "--help")
        for option in ("--direction", "--verify", "--file", "--progress", "--threshold", "--json", "--connections"):
            self.assertIn(option, usage)


if __name__ == "__main__":
    unittest.main(verbosity=2)
