#!/usr/bin/env python3
"""What a connection asks the system about itself while it is made and closed under the switch."""

import re
import shutil
import sys
import unittest

from support import BOTH, SwitchTest

# Connects, asks and closes so often.
ASK = """
import socket, sys, threading
l = socket.create_server(("127.0.0.1", 0)); n = int(sys.argv[1])
def serve():
    for _ in range(n):
        c, _ = l.accept(); c.sendall(c.recv(100)); c.recv(100); c.close()
server = threading.Thread(target=serve); server.start()
for _ in range(n):
    s = socket.create_connection(l.getsockname()); s.sendall(b"ask"); assert s.recv(100) == b"ask"; s.close()
server.join()
"""
FEW, MANY = 10, 60
# None of them moves a byte, or waits for one.
ASKED = ("rt_sigprocmask", "prlimit64", "getpid", "fcntl", "getsockopt", "setsockopt", "getsockname", "getpeername")
LINE = re.compile(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", re.MULTILINE)


@unittest.skipUnless(shutil.which("strace"), "strace is not installed")
class FewCallsTest(SwitchTest):
    def calls(self, connections):
        """How often each system call was made, by the program and by the library's threads."""
        counts = self.folder / "counts"
        own = {name: word for name, word in self.environment(BOTH).items() if name.startswith(("LD_", "ESDP_"))}
        command = ["strace", "-f", "-c", "-o", counts, *(f"-E{name}={word}" for name, word in own.items())]
        self.run_program(*command, sys.executable, "-c", ASK, connections, switched=False)
        self.assertEqual(len(self.moved("accepted")), connections, self.log_text())
        self.log.unlink()
        return {name: int(count) for count, name in LINE.findall(counts.read_text())}

    def test_a_connection_asks_the_system_little_about_itself(self):
        few, many = self.calls(FEW), self.calls(MANY)
        each = {name: (many.get(name, 0) - few.get(name, 0)) / (MANY - FEW) for name in ASKED}
        print(each)
        self.assertGreater(each["fcntl"], 1, "nothing was counted")
        self.assertLess(sum(each.values()), 110, each)


if __name__ == "__main__":
    unittest.main(verbosity=2)
