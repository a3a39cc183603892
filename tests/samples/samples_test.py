#!/usr/bin/env python3
"""Every small sample does what it says."""

import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs"))

from programs import RUNFILES, ProgramTest, nobody_listens


def sample(name):
    return os.path.join(RUNFILES, "samples", name)


class SmallSamplesTest(ProgramTest):
    def test_hello_moves_a_megabyte_without_copying_it(self):
        output = self.run_program(sample("hello"))
        self.assertIn("hello, registered memory", output)
        self.assertEqual(2, output.count("OK, 1048576 bytes, 1048576 of them zero-copy"), output)

    def test_the_server_echoes_what_the_client_sends(self):
        server, port = self.start(sample("echo_server"), "--clients", "1", until=r"listening on .*:(\d+)$")
        output = self.run_program(sample("echo_client"), "--port", port.group(1), "--text", "once more")
        self.assertEqual("once more\n", output)
        self.assertIn("client served: 9 bytes", self.finish(server))

    def test_the_server_serves_client_after_client_and_several_at_once(self):
        server, port = self.start(sample("echo_server"), "--clients", "6", until=r"listening on .*:(\d+)$")
        long_text = "x" * 100000
        others = [
            self.start(sample("echo_client"), "--port", port.group(1), "--text", long_text, until=r"^x{100000}$")[0]
            for _ in range(5)
        ]
        self.assertEqual("last\n", self.run_program(sample("echo_client"), "--port", port.group(1), "--text", "last"))
        for other in others:
            self.finish(other)
        self.assertEqual(6, self.finish(server).count("client served"))

    def test_the_server_outlives_a_client_that_dies(self):
        server, port = self.start(sample("echo_server"), "--clients", "2", until=r"listening on .*:(\d+)$")
        client, _ = self.start(sample("echo_client"), "--port", port.group(1), "--text", "a", until="a")
        client.kill()
        self.assertEqual("b\n", self.run_program(sample("echo_client"), "--port", port.group(1), "--text", "b"))
        self.finish(server)

    def test_the_client_says_why_it_cannot_connect(self):
        with nobody_listens() as port:
            self.run_program(sample("echo_client"), "--port", port, code=1)
        self.assertIn("UNAVAILABLE", self.complaints)

    def test_the_event_loop_passes_lines_through(self):
        text = "first\nsecond\n" + "long " * 5000 + "\n"
        self.assertEqual(text, self.run_program(sample("event_loop"), text_in=text))

    def test_the_ring_in_c_sends_from_fewer_buffers_than_sends_are_out(self):
        output = self.run_program(sample("exs_ring"))
        self.assertEqual("64 sends of 1 MiB from a ring of 2 buffers, 64 of them zero-copy\n", output)

    def test_an_urgent_byte_is_told_before_what_waits_before_it(self):
        output = self.run_program(sample("urgent"))
        self.assertIn("announced; 0 bytes have been received\n", output)
        self.assertIn("received 1048577 bytes; the last one is urgent: !\n", output)

    def test_deadlines_and_cancel_end_operations_and_not_the_connection(self):
        lines = [line.split(":  ")[-1].strip() for line in self.run_program(sample("deadlines")).splitlines()]
        wanted = ["deadline exceeded, 0 bytes", "cancelled, 0 bytes", "ok, 1024 bytes", "bad handle", "still connected"]
        self.assertEqual(wanted, lines)

    def test_a_sender_that_is_too_fast_waits_and_loses_nothing(self):
        output = self.run_program(sample("back_pressure"), "--messages", "500")
        self.assertEqual("500 messages sent and received; the sender had to wait, and lost none\n", output)

    def test_blocking_calls_move_memory_that_nobody_registered_and_leave_none_registered(self):
        output = self.run_program(sample("blocking_copy"), "--mib", "16")
        self.assertIn("16777216 bytes have arrived, all equal: ", output)
        self.assertGreater(int(re.search(r"(\d+) of them were sent zero-copy", output).group(1)), 8 << 20, output)
        self.assertIn("; still registered: 0 bytes\n", output)

    def test_blocking_calls_copy_a_file_of_any_size(self):
        for size in (0, 1, 1000003):
            with tempfile.NamedTemporaryFile() as file:
                file.write(os.urandom(size))
                file.flush()
                output = self.run_program(sample("blocking_copy"), "--file", file.name)
            self.assertIn("%d bytes have arrived, all equal: " % size, output)
        self.run_program(sample("blocking_copy"), "--file", "/no/such/file", code=1)
        self.assertIn("/no/such/file: No such file", self.complaints)

    def test_a_thousand_connections_share_one_queue(self):
        output = self.run_program(sample("many_connections"), "--connections", "1000")
        self.assertIn("1000 connections, 1000 answers of 64 bytes", output)

    def test_too_few_descriptors_are_told_before_anything_is_begun(self):
        self.run_program("sh", "-c", 'ulimit -n 256; exec "$0"', sample("many_connections"), code=1)
        self.assertIn("2100 descriptors are needed", self.complaints)

    def test_one_region_goes_to_many_sockets_without_a_copy(self):
        output = self.run_program(sample("fan_out"), "--receivers", "5", "--bytes", "1000003")
        wanted = "5 receivers have 1000003 bytes each from one region, all equal; copies of payload: 0\n"
        self.assertEqual(wanted, output)

    def test_coroutines_serve_several_clients_side_by_side(self):
        output = self.run_program(sample("coroutines"), "--clients", "20")
        wanted = {"client %d, round %d" % (client, number) for client in range(1, 21) for number in (1, 2)}
        self.assertEqual(wanted, set(output.splitlines()))
        self.assertEqual(40, len(output.splitlines()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
