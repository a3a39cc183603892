#!/usr/bin/env python3
"""Threads that wait with epoll: each wait ends as it does without the switch, and where calls go directly it does the engine's work."""

import os
import subprocess
import unittest

from support import RUNFILES, SwitchTest

DIRECT = os.environ["ESDP_SWITCH_MODE"] == "direct"
WAITS = RUNFILES / "tests/switch/epoll_waits"

ECHO = """
import pathlib, select, socket, sys
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1])
s, _ = l.accept(); e = select.epoll(); e.register(s, select.EPOLLIN)
while e.poll():
    d = s.recv(100)
    if not d: break
    s.sendall(d)
"""
ASKS = """
import pathlib, select, socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); e = select.epoll(); e.register(s, select.EPOLLIN)
def ask(rounds):
    for i in range(rounds):
        s.sendall(b"x"); assert e.poll(); assert s.recv(9) == b"x"
def seconds(name):
    tasks = pathlib.Path("/proc/self/task").iterdir()
    return sum(int((t / "schedstat").read_text().split()[0]) for t in tasks if (t / "comm").read_text() == name + "\\n") / 1e9
ask(1000)
main = pathlib.Path("/proc/self/comm").read_text().strip()
before = seconds("esdp-progress"), seconds(main)
ask(5000)
print((seconds("esdp-progress") - before[0]) / (seconds(main) - before[1]))
"""


class WaitsTest(SwitchTest):
    def test_a_wait_ends_as_without_the_switch(self):
        plain = subprocess.run([WAITS], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(self.run_program(WAITS)[0], plain)
        self.assertEqual(self.log_text().count("goes directly"), 2 if DIRECT else 0)
        self.assertTrue(all(each.sdp for each in self.moved()), self.log_text())

    @unittest.skipUnless(DIRECT, "relayed bytes are the engine's thread's to move")
    def test_who_waits_alone_does_the_work_of_the_progress_thread(self):
        _, port = self.start_python(ECHO, listens=True)
        share = float(self.finish(self.start_python(ASKS, port))[0])
        self.assertLess(share, 0.25)


if __name__ == "__main__":
    unittest.main(verbosity=2)
