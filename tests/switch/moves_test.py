#!/usr/bin/env python3
"""What goes directly leaves TCP for shared memory once it is worth it, and its program sees nothing of that."""

import os
import re
import unittest

from support import BOTH, ENGINE, SwitchTest

# A server that sends back what it gets, and says how its connection looks when that has come to the end.
ECHO = """
import os, select, socket, sys, threading
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1])
def serve(c):
    names = c.getsockname(), c.getpeername()
    while True:
        select.select([c], [], [])
        d = c.recv(1 << 16)
        if not d: break
        c.sendall(d)
    sys.stdout.write("%s number %d next %d\\n" % ("same names" if names == (c.getsockname(), c.getpeername()) else "other names",
          c.fileno(), os.dup(0)))
    c.close()
threads = []
for _ in range(int(sys.argv[1])):
    c, _ = l.accept(); threads.append(threading.Thread(target=serve, args=(c,))); threads[-1].start()
for each in threads: each.join()
"""
# Talks by pieces of the size that is told, and looks whether each comes back.
TALK = """
import hashlib, os, socket, sys, threading
port, connections, size, pieces = map(int, sys.argv[1:])
def talk(number):
    s = socket.create_connection(("127.0.0.1", port))
    for i in range(pieces):
        piece = hashlib.shake_128(f"{number} {i}".encode()).digest(size)
        sender = threading.Thread(target=s.sendall, args=(piece,)); sender.start()
        got = b""
        while len(got) < size: got += s.recv(size - len(got))
        sender.join()
        if got != piece: print("other bytes in", number, i)
    s.shutdown(socket.SHUT_WR)
    sys.stdout.write("end %r\\n" % s.recv(1))
    s.close()
threads = [threading.Thread(target=talk, args=(n,)) for n in range(connections)]
for each in threads: each.start()
for each in threads: each.join()
"""


class MovesTest(SwitchTest):
    def setUp(self):
        super().setUp()
        os.environ["ESDP_SWITCH_MODE"] = "direct"

    def talk(self, connections, size, pieces, rules=BOTH):
        server, port = self.start_python(ECHO, str(connections), rules=rules, listens=True)
        client = self.start_python(TALK, port, str(connections), str(size), str(pieces))
        self.assertEqual(self.finish(client)[0], "end b''\n" * connections)
        said = self.finish(server)[0].splitlines()
        carried = connections * size * pieces
        self.assertEqual(sum(each.sdp_received for each in self.moved("accepted")), carried)
        self.assertEqual(sum(each.tcp for each in self.moved()), 0)
        return said

    def moves(self):
        return len(re.findall("goes over local", self.log_text()))

    def test_long_ones_move_and_their_program_sees_nothing_of_it(self):
        said = self.talk(connections=8, size=200_000, pieces=20)
        self.assertEqual(self.moves(), 8)
        for line in said:
            self.assertRegex(line, "^same names number \\d+ next \\d+$")
            self.assertLess(int(line.split()[-1]), 40, "the switch has taken numbers of the program")

    def test_many_small_pieces_move_too(self):
        self.talk(connections=2, size=100, pieces=2000)
        self.assertEqual(self.moves(), 2)

    def test_what_makes_many_calls_moves_before_it_has_carried_much(self):
        self.talk(connections=4, size=4, pieces=1000)
        self.assertEqual(self.moves(), 4)

    def test_the_engine_calls_libc_past_what_is_interposed(self):
        # Or a call of it that holds its own locks would wait for those of the library in front, and that for it.
        def names(library, *options):
            lines = self.run_program("nm", "-D", *options, library, switched=False)[0].splitlines()
            return {line.split()[-1].split("@")[0] for line in lines}

        interposed = names(self.shim, "--defined-only")
        called = names(self.folder / ENGINE.name, "--undefined-only")
        self.assertIn("listen", interposed)
        # These look at no number of a socket.
        self.assertEqual(called & interposed - {"__open_2", "getrlimit", "sysconf", "splice"}, set())

    def test_short_ones_stay(self):
        self.talk(connections=4, size=1000, pieces=10)
        self.assertEqual(self.moves(), 0)

    def test_a_rule_keeps_them_on_tcp(self):
        rules = "use both server * *:* fabric=qpip;use both client * *:*"
        self.talk(connections=2, size=200_000, pieces=10, rules=rules)
        self.assertEqual(self.moves(), 0)

    def test_what_moves_may_be_passed_to_a_child_afterwards(self):
        text = """
import os, socket
l = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(l.getsockname()); b, _ = l.accept()
import threading, time
whole = os.urandom(1 << 20)
def send(): a.sendall(whole)
t = threading.Thread(target=send); t.start()
got = b""
while len(got) < len(whole): got += b.recv(1 << 16)
t.join(); print(got == whole, flush=True)
time.sleep(0.3)
child = os.fork()
if child == 0:
    a.close()
    while d := b.recv(1 << 16): b.sendall(d)
    os._exit(0)
b.close()
def again(): a.sendall(whole); a.shutdown(socket.SHUT_WR)
t = threading.Thread(target=again); t.start()
print(b"".join(iter(lambda: a.recv(1 << 16), b"")) == whole); t.join(); os.wait()
"""
        self.assertEqual(self.run_program("/usr/bin/env", "python3", "-u", "-c", text)[0], "True\nTrue\n")
        self.assertEqual(self.moves(), 1)

    def test_a_peer_that_is_killed_behind_the_move_is_noticed(self):
        text = """
import socket
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1], flush=True)
c, _ = l.accept()
try:
    while c.recv(1 << 16): pass
    print("end")
except ConnectionResetError: print("reset")
"""
        server, port = self.start_python(text, listens=True)
        client = self.start_python(
            f"import os, socket\ns = socket.create_connection(('127.0.0.1', {port}))\n"
            "for _ in range(100): s.sendall(bytes(100_000))\nos.kill(os.getpid(), 9)"
        )
        self.finish(client, -9)
        self.assertEqual(self.finish(server, timeout=20)[0], "reset\n")
        self.assertEqual(self.moves(), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
