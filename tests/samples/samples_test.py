#!/usr/bin/env python3
"""Every small sample does what it says."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import SAMPLES, SampleTest


def sample(name):
    return os.path.join(SAMPLES, name)


class SmallSamplesTest(SampleTest):
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
        server, port = self.start(sample("echo_server"), until=r"listening on .*:(\d+)$")
        server.kill()
        server.wait()
        self.run_program(sample("echo_client"), "--port", port.group(1), code=1)
        self.assertIn("UNAVAILABLE", self.complaints)

    def test_the_event_loop_passes_lines_through(self):
        text = "first\nsecond\n" + "long " * 5000 + "\n"
        self.assertEqual(text, self.run_program(sample("event_loop"), text_in=text))


if __name__ == "__main__":
    unittest.main(verbosity=2)
