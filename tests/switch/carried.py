"""What the tests of whole programs under the socket switch share: a port that is theirs, the three pairs of sides, and the bytes
that have to go by SDP."""

import os
import shutil
import socket
import subprocess
import time
import unittest

from support import SwitchTest

# (server, client) under the switch.
SIDES = ((True, True), (True, False), (False, True))


class CarriedTest(SwitchTest):
    def setUp(self):
        super().setUp()
        self.port = self.fresh_port()

    def fresh_port(self):
        """One that nobody else gets before the test ends: a socket that does not listen holds it, beside which a server may
        bind that sets SO_REUSEADDR, as all of them do."""
        holder = socket.socket()
        self.addCleanup(holder.close)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        return str(holder.getsockname()[1])

    def program(self, name, more=""):
        """A missing one is a failure: impl/bazel/install.sh names the package."""
        path = shutil.which(name, path=f"/usr/bin:/usr/sbin:/bin:/sbin{more}")
        self.assertIsNotNone(path, f"{name} is not installed: see esdp_test_packages in impl/bazel/install.sh")
        return path

    def listens(self, server=None, port=None):
        """Looks at the kernel's table, so that the server sees no connection."""
        wanted = f":{int(port or self.port):04X}"
        until = time.monotonic() + 60
        while time.monotonic() < until:
            for table in ("/proc/net/tcp", "/proc/net/tcp6"):
                with open(table, encoding="ascii") as file:
                    lines = [line.split() for line in file]
                if any(words[1].endswith(wanted) and words[3] == "0A" for words in lines[1:]):
                    return
            if server is not None and server.poll() is not None:
                self.fail(f"{server.args} has ended: {server.communicate()}")
            time.sleep(0.02)
        self.fail(f"nobody listens on {wanted}")

    def each_side(self):
        """Runs with both under the switch, and with one; a fresh port and log for each."""
        for sides in SIDES:
            self.setUp()
            yield sides
            self.stop_all()

    def check_path(self, both, least):
        """By SDP where both have the switch, else nothing was. Who serves may say what it has moved only after its client's end."""
        until = time.monotonic() + 20
        while both and sum(each.sdp for each in self.moved()) < least and time.monotonic() < until:
            time.sleep(0.05)
        carried = sum(each.sdp for each in self.moved())
        if both:
            self.assertGreaterEqual(carried, least, self.log_text())
        else:
            self.assertEqual(carried, 0, self.log_text())
        self.assertEqual(sum(each.tcp for each in self.moved()), 0)
