#!/usr/bin/env python3
"""Programs of Debian under the switch: what they print and how they end is as of a plain run, and the bytes go by SDP; each
against itself, and against a plain peer on either side."""

import json
import shutil
import socket
import sys
import time
import unittest

from support import SwitchTest

# (server, client) under the switch.
SIDES = ((True, True), (True, False), (False, True))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class ProgramsTest(SwitchTest):
    def setUp(self):
        super().setUp()
        self.port = str(free_port())

    def program(self, name):
        """A missing one is a failure: impl/bazel/install.sh names the package."""
        path = shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin")
        self.assertIsNotNone(path, f"{name} is not installed: see esdp_test_packages in impl/bazel/install.sh")
        return path

    def listens(self):
        """Looks at the kernel's table, so that the server sees no connection."""
        wanted = f":{int(self.port):04X}"
        for _ in range(400):
            for table in ("/proc/net/tcp", "/proc/net/tcp6"):
                with open(table, encoding="ascii") as file:
                    lines = [line.split() for line in file]
                if any(words[1].endswith(wanted) and words[3] == "0A" for words in lines[1:]):
                    return
            time.sleep(0.02)
        self.fail(f"nobody listens on {self.port}")

    def check_path(self, both, least):
        """By SDP where both have the switch, else nothing was."""
        carried = sum(each.sdp for each in self.moved())
        if both:
            self.assertGreaterEqual(carried, least, self.log_text())
        else:
            self.assertEqual(carried, 0, self.log_text())
        self.assertEqual(sum(each.tcp for each in self.moved()), 0)

    def test_iperf3(self):
        iperf3 = self.program("iperf3")
        for words in (["-P", "4"], ["-R"], ["--bidir"]):
            for sides in SIDES:
                with self.subTest(words=words, sides=sides):
                    self.setUp()
                    server = self.start(iperf3, "-s", "-1", "-p", self.port, "-B", "127.0.0.1", switched=sides[0])
                    self.listens()
                    command = [iperf3, "-c", "127.0.0.1", "-p", self.port, "-n", "20M", "-J", *words]
                    output, _ = self.run_program(*command, switched=sides[1])
                    self.finish(server)
                    end = json.loads(output)["end"]
                    self.assertGreaterEqual(end["sum_sent"]["bytes"], 5 << 20)  # with --bidir the first end of both ends it
                    self.assertGreater(end["sum_received"]["bytes"], 0)
                    self.check_path(all(sides), 10 << 20)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    unittest.main(verbosity=2)
