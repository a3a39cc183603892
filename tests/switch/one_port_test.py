#!/usr/bin/env python3
"""One port takes both protocols: what a switched server does with each way in which a connection can begin."""

import os
import random
import socket
import subprocess
import sys
import time
import unittest

from support import BOTH, RUNFILES, SwitchTest

# Answers each connection with what it has read of it, when it ends or there is no more for a second.
READER = """
import select, socket, sys
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1])
while True:
    c, _ = l.accept()
    c.settimeout(3)
    try:
        c.sendall(b"[" + c.recv(1000) + b"]")
    except (ConnectionError, TimeoutError) as e: print(type(e).__name__)
    c.close()
"""
# A loop that does not block, for many at once: echoes.
LOOP = """
import selectors, socket, sys
s = selectors.DefaultSelector(); l = socket.create_server(("127.0.0.1", 0), backlog=2000); l.setblocking(False)
s.register(l, selectors.EVENT_READ); print(l.getsockname()[1])
while True:
    for key, _ in s.select():
        if key.fileobj is l:
            try: c, _ = l.accept()
            except BlockingIOError: continue
            c.setblocking(False); s.register(c, selectors.EVENT_READ); continue
        try: d = key.fileobj.recv(65536)
        except BlockingIOError: continue
        except ConnectionError: d = b""
        if d: key.fileobj.send(d)
        else: s.unregister(key.fileobj); key.fileobj.close()
"""
SPEAKS_FIRST = """
import socket, sys
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1])
while True:
    c, _ = l.accept()
    try:
        c.sendall(b"220 hello"); got = c.recv(1000); c.sendall(b"[" + got + b"]"); print(repr(got))
    except ConnectionError as e: print(type(e).__name__)
    c.close()
"""
CLIENT = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for word in sys.argv[2:]:
    if word == "read": print(s.recv(1000).decode())
    elif word == "await": sys.stdin.readline()
    else: s.sendall(word.encode())
"""
# Resets what it takes, without a look.
RESETTER = """
import socket, struct
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1])
while True:
    c, _ = l.accept(); print("one")
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); c.close()
"""
READ_TO_RESET = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.settimeout(10)
try: print(s.recv(1))
except ConnectionResetError: print("reset", s.recv(1))
"""
# Closes what it takes, without a look.
CLOSER = """
import socket, sys
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1])
while True: l.accept()[0].close(); print("one")
"""
# Both ends in one thread, of which neither says anything for a while. Tells whether anybody has connected once more.
LOOKS_LATE = """
import select, socket, time
l = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(l.getsockname()); s, _ = l.accept()
time.sleep(1)
c.sendall(b"one"); print(s.recv(100).decode(), end=" ")
s.sendall(b"two"); print(c.recv(100).decode(), end=" ")
print(select.select([l], [], [], 0)[0] != [])
"""
# Begins to look just before the connection is answered for it.
LOOKS_THEN = """
import socket, time
l = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(l.getsockname()); s, _ = l.accept()
c.sendall(b"one"); time.sleep(0.85)
print(s.recv(100).decode(), end=" ")
s.sendall(b"two"); print(c.recv(100).decode())
"""
# Looks at its first connection alone.
HOLDER = """
import socket
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1])
c, _ = l.accept(); c.sendall(b"[" + c.recv(100) + b"]"); c.close()
held = [l.accept() for _ in range(100)]
"""
# Asks and tells the system of its connections without a rest while the engine answers them, then hears of each what comes.
ASKS_MEANWHILE = """
import fcntl, os, select, socket, time
l = socket.create_server(("127.0.0.1", 0))
first = socket.create_connection(l.getsockname()); l.accept()[0].close(); first.close()
clients = [socket.create_connection(l.getsockname()) for _ in range(30)]
servers = [l.accept()[0] for _ in clients]
wrong, until = set(), time.monotonic() + 2.5
with select.epoll() as sets:
    while time.monotonic() < until:
        for s in servers:
            sets.register(s, select.EPOLLIN)
            try: sets.register(s, select.EPOLLIN); wrong.add("twice")
            except FileExistsError: pass
            sets.unregister(s)
            if fcntl.fcntl(s, fcntl.F_GETFL) & os.O_NONBLOCK: wrong.add("flags")
    for s in servers: sets.register(s, select.EPOLLIN)
    for c in clients: c.sendall(b"x")
    told, until = set(), time.monotonic() + 5
    while len(told) < len(servers) and time.monotonic() < until:
        told |= {fd for fd, _ in sets.poll(0.1) if os.read(fd, 1) == b"x"}
print(sorted(wrong), len(told))
"""
ACCEPTS_LATE = """
import select, socket, time
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1])
for _ in range(3):
    time.sleep(0.5); c, _ = l.accept(); c.sendall(b"[" + c.recv(100) + b"]"); c.close()
print(select.select([l], [], [], 1)[0] != [])
"""
# Passes each connection that it has not looked at on to a program that is not switched, which says `first`, reads and answers.
PASSES_ON = """
import os, socket, subprocess, sys
text = "import socket; u = socket.socket(fileno=0); _, (c,), _, _ = socket.recv_fds(u, 1, 1); " \\
    "s = socket.socket(fileno=c); s.sendall(b'" + sys.argv[1] + "'); s.sendall(b'[' + s.recv(1000) + b']')"
plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1])
while True:
    c, _ = l.accept()
    mine, its = socket.socketpair(); subprocess.Popen([sys.executable, "-c", text], stdin=its, env=plain)
    socket.send_fds(mine, [b"x"], [c.fileno()]); c.close()
"""
SDP = "use sdp server * *:*;use sdp client * *:*"
BOTH_PATIENT = "use both server * *:* wait=2000;use both client * *:*"
# Its threads before and behind a connect that does not wait, and the bytes of memory between.
THREADS_OF_CONNECT = """
import os, socket, sys
def look(): print(*sorted(open(f"/proc/self/task/{t}/comm").read().strip() for t in os.listdir("/proc/self/task")))
def memory(): return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
s = socket.socket(); s.setblocking(False); look(); before = memory()
s.connect_ex(("127.0.0.1", int(sys.argv[1]))); look(); print(memory() - before)
"""
# Both ends of a connection in one thread, of which the server's speaks first.
BOTH_ENDS = """
import select, socket, sys
l = socket.create_server(("127.0.0.1", 0))
c = socket.socket(); c.setblocking(False); c.connect_ex(l.getsockname())
s, _ = l.accept()
s.sendall(b"220 hello")
c.setblocking(True); print(c.recv(100).decode())
c.sendall(b"bye"); print(s.recv(100).decode())
"""
REQUEST = b"MPA ID Req Frame\x10\x02\x00\x60" + bytes(96)


class OnePortTest(SwitchTest):
    def connect(self, port):
        client = socket.create_connection(("127.0.0.1", int(port)))
        self.addCleanup(client.close)
        client.settimeout(20)
        return client

    def reply(self, client):
        return b"".join(iter(lambda: client.recv(1000), b""))

    def test_first_bytes_that_begin_like_a_request_are_the_programs_from_the_byte_that_differs(self):
        _, port = self.start_python(READER, listens=True)
        for text in (b"M", b"MPA", b"MPA ID Req ", b"MPA ID Req Fram"):
            client = self.connect(port)
            client.sendall(text)
            time.sleep(0.05)
            client.sendall(b"\nplain")
            self.assertEqual(self.reply(client)[:200], b"[" + text + b"\nplain]")

    def test_a_frame_with_a_wrong_length_is_plain(self):
        _, port = self.start_python(READER, listens=True)
        client = self.connect(port)
        text = b"MPA ID Req Frame\x10\x02\xff\xff and text behind it"
        client.sendall(text)
        self.assertEqual(self.reply(client), b"[" + text + b"]")

    def test_the_end_first_is_the_end(self):
        _, port = self.start_python(READER, listens=True)
        client = self.connect(port)
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(self.reply(client), b"[]")

    def test_a_part_of_a_frame_and_the_end_is_plain(self):
        _, port = self.start_python(READER, listens=True)
        client = self.connect(port)
        client.sendall(REQUEST[:50])
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(self.reply(client), b"[" + REQUEST[:50] + b"]")

    def test_a_part_of_a_frame_and_silence_is_plain_after_a_second(self):
        for server in (READER, LOOP):
            _, port = self.start_python(server, listens=True)
            client = self.connect(port)
            client.sendall(REQUEST[:18])
            client.settimeout(0.5)
            with self.assertRaises(TimeoutError):
                client.recv(1)
            client.settimeout(5)
            self.assertIn(REQUEST[:18], client.recv(1000))

    def test_many_that_send_a_byte_of_the_key_and_stop_cost_no_thread_each_and_are_plain_in_the_end(self):
        server, port = self.start_python(LOOP, listens=True)
        clients = [self.connect(port) for _ in range(300)]
        for client in clients:
            client.sendall(b"M")
        time.sleep(0.5)
        with open(f"/proc/{server.pid}/status", encoding="ascii") as status:
            threads = next(int(line.split()[1]) for line in status if line.startswith("Threads:"))
        self.assertLessEqual(threads, 3)
        for client in clients:
            self.assertEqual(client.recv(10), b"M")

    # The frame in drawn pieces, from a client under the switch whose bytes a go-between deals out.
    def test_a_request_may_come_in_any_pieces(self):
        seed = int(time.time())
        draw = random.Random(seed)
        for server in (READER.replace("1000", "1"), LOOP):
            _, port = self.start_python(server, listens=True)
            between = socket.create_server(("127.0.0.1", 0))
            self.addCleanup(between.close)
            client = self.start_python(
                CLIENT, str(between.getsockname()[1]), "x", "read", rules="use sdp client * *:* answer=20000"
            )
            near, _ = between.accept()
            far = self.connect(port)
            request = b""
            while len(request) < 20 or len(request) < 20 + int.from_bytes(request[18:20], "big"):
                request += near.recv(1000)
            while request:
                count = draw.randint(1, 40)
                far.sendall(request[:count])
                request = request[count:]
                time.sleep(0.01)
            self.pass_on(near, far, client)
            self.assertIn("x", self.finish(client)[0], f"seed {seed}")

    def pass_on(self, near, far, client):
        near.setblocking(False)
        far.setblocking(False)
        until = time.time() + 20
        while client.poll() is None and time.time() < until:
            for one, other in ((near, far), (far, near)):
                try:
                    if data := one.recv(65536):
                        other.setblocking(True)
                        other.sendall(data)
                        other.setblocking(False)
                except BlockingIOError:
                    pass
                except OSError:
                    return
            time.sleep(0.001)

    def test_a_server_that_speaks_first_reaches_plain_and_sdp_clients(self):
        _, port = self.start_python(SPEAKS_FIRST, listens=True, rules="use both server * *:* wait=2000")
        for rules, switched in ((BOTH, True), (BOTH, False)):
            output, _ = self.finish(
                self.start_python(CLIENT, port, "read", "thanks", "read", rules=rules, switched=switched)
            )
            self.assertEqual(output, "220 hello\n[thanks]\n")
        self.stop_all()

    def test_what_a_first_connection_needs_is_there_before_tcp_connects(self):
        # Else a server that speaks first would not wait for the request. Nobody gets a thread to connect by TCP.
        _, known = self.start_python(SPEAKS_FIRST, listens=True)
        with socket.create_server(("127.0.0.1", 0)) as other:
            for port, wanted in ((known, True), (other.getsockname()[1], False)):
                output, _ = self.finish(self.start_python(THREADS_OF_CONNECT, str(port)))
                before, behind, memory = output.splitlines()
                self.assertEqual((before, "esdp-switch" in behind.split()), ("python3", wanted))
                self.assertEqual("esdp-progress" in behind.split(), wanted and os.environ["ESDP_SWITCH_MODE"] == "direct")
                self.assertLess(int(memory), 8 << 20)

    def test_a_server_that_closes_what_it_has_not_looked_at_ends_the_connection(self):
        for rules, clients in ((BOTH_PATIENT, (True, False)), (SDP, (True,))):
            server, port = self.start_python(CLOSER, listens=True, rules=rules)
            for switched in clients:
                started = [self.start_python(CLIENT, port, "read", rules=rules, switched=switched) for _ in range(8)]
                for client in started:
                    self.assertEqual(self.finish(client), ("\n", ""))
            server.kill()
            accepted = server.communicate()[0].count("one")
            self.assertEqual(accepted, 8 * len(clients), "nobody has connected once more")

    def test_a_server_that_resets_what_it_has_not_looked_at_resets_the_connection(self):
        for rules, clients in ((BOTH_PATIENT, (True, False)), (SDP, (True,))):
            server, port = self.start_python(RESETTER, listens=True, rules=rules)
            for switched in clients:
                for _ in range(4 if switched else 1):
                    client = self.start_python(READ_TO_RESET, port, rules=rules, switched=switched)
                    self.assertEqual(self.finish(client), ("reset b''\n", ""))
            server.kill()
            self.assertEqual(server.communicate()[0].count("one"), 3 + len(clients), "nobody has connected once more")

    def test_a_server_of_sdp_alone_says_nothing_before_it_is_asked(self):
        _, port = self.start_python(SPEAKS_FIRST, listens=True, rules="use sdp server * *:* wait=0")
        client = self.connect(port)
        client.settimeout(0.5)
        with self.assertRaises(TimeoutError):
            client.recv(1)
        client.settimeout(20)
        client.sendall(REQUEST)
        self.assertTrue(client.recv(100).startswith(b"MPA ID Rep"))
        silent = self.connect(port)
        self.assertEqual(self.reply(silent), b"")

    def test_one_thread_may_be_both_ends_of_which_the_servers_speaks_first(self):
        patient = BOTH_PATIENT.replace("2000", "60000")
        for rules in (SDP, patient, BOTH):
            self.log.unlink(missing_ok=True)
            begin = time.monotonic()
            output, _ = self.finish(self.start_python(BOTH_ENDS, rules=rules))
            self.assertEqual(output, "220 hello\nbye\n")
            self.assertLess(time.monotonic() - begin, 20)
            self.assertEqual([each.sdp for each in self.moved()], [12, 12], self.log_text())

    # Nothing waits, so the request is late: it is taken out of the input, and the client goes by TCP.
    def test_a_late_request_costs_a_connect_and_no_byte(self):
        server, port = self.start_python(SPEAKS_FIRST, listens=True, rules="use both server * *:* wait=0")
        client = self.connect(port)
        self.assertEqual(client.recv(100), b"220 hello")
        client.sendall(REQUEST + b"text")
        self.assertEqual(self.reply(client), b"[text]")
        output, _ = self.finish(self.start_python(CLIENT, port, "read", "thanks", "read", rules="use try client * *:*"))
        self.assertEqual(output, "220 hello\n[thanks]\n")
        server.kill()
        self.assertNotIn("MPA", server.communicate()[0])

    def test_a_server_that_does_not_look_at_a_connection_for_long_keeps_it(self):
        output, _ = self.finish(self.start_python(LOOKS_LATE, rules=BOTH + " answer=200"))
        self.assertEqual(output, "one two False\n")
        self.assertEqual([each.sdp for each in self.moved()], [6, 6], self.log_text())

    def test_a_read_that_began_before_a_connection_was_answered_goes_on_with_what_it_is(self):
        environment = self.environment()
        environment["LD_PRELOAD"] += f":{RUNFILES / 'tests/switch/libheld_recv.so'}"
        output, _ = self.finish(self.start_python(LOOKS_THEN, env=environment))
        self.assertEqual(output, "one two\n")
        self.assertEqual([each.sdp for each in self.moved()], [6, 6], self.log_text())

    def test_what_is_asked_of_a_connection_while_it_is_answered_is_of_what_it_is(self):
        output, _ = self.finish(self.start_python(ASKS_MEANWHILE))
        self.assertEqual(output, "[] 30\n")
        self.assertEqual([each.sdp for each in self.moved() if each.sdp], [1] * 60, self.log_text())

    # Of a client that does not know that it is heard.
    def test_a_request_is_answered_before_its_client_gives_up_whatever_the_server_does(self):
        _, port = self.start_python(HOLDER, listens=True)
        self.assertEqual(self.finish(self.start_python(CLIENT, port, "word", "read"))[0], "[word]\n")
        client = self.connect(port)
        client.settimeout(2.5)
        client.sendall(REQUEST)
        self.assertTrue(client.recv(100).startswith(b"MPA ID Rep"))

    def test_a_server_that_accepts_late_has_each_client_once(self):
        server, port = self.start_python(ACCEPTS_LATE, listens=True)
        rules = BOTH + " answer=200"
        clients = [self.start_python(CLIENT, port, "word", "read", rules=rules) for _ in range(3)]
        for client in clients:
            self.assertEqual(self.finish(client)[0], "[word]\n")
        self.assertEqual(server.communicate()[0], "False\n")
        self.assertEqual([each.sdp for each in self.moved()], [10] * 6, self.log_text())

    def test_a_server_that_says_one_other_byte_has_answered(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        server.settimeout(5)
        client = self.start_python(CLIENT, str(server.getsockname()[1]), "word", "read", rules="use try client * *:* answer=60000")
        first, _ = server.accept()
        self.assertTrue(first.recv(100).startswith(b"MPA ID Req Frame"))
        first.sendall(b"2")
        second, _ = server.accept()
        self.assertEqual(second.recv(100), b"word")
        second.sendall(b"by tcp")
        self.assertEqual(self.finish(client)[0], "by tcp\n")
        first.close()
        second.close()

    def test_one_that_is_passed_on_may_be_asked_late(self):
        _, port = self.start_python(PASSES_ON, "", listens=True)
        client = self.connect(port)
        time.sleep(0.3)
        client.sendall(REQUEST)
        self.assertTrue(client.recv(100).startswith(b"MPA ID Rep"))

    def test_one_that_is_passed_on_and_has_spoken_is_asked_too_late(self):
        _, port = self.start_python(PASSES_ON, "220 hello", listens=True)
        for pieces in ((REQUEST + b"text",), (REQUEST[:30], REQUEST[30:] + b"text"), (b"text",)):
            client = self.connect(port)
            self.assertEqual(client.recv(100), b"220 hello")
            for piece in pieces:
                client.sendall(piece)
                time.sleep(0.05)
            self.assertEqual(self.reply(client), b"[text]")

    def test_one_that_is_passed_on_gets_a_part_of_a_frame_after_a_second(self):
        for first in ("", "220 hello"):
            _, port = self.start_python(PASSES_ON, first, listens=True)
            client = self.connect(port)
            self.assertEqual(client.recv(100) if first else b"", first.encode())
            client.sendall(REQUEST[:18])
            client.settimeout(0.5)
            with self.assertRaises(TimeoutError):
                client.recv(1)
            client.settimeout(5)
            self.assertEqual(self.reply(client), b"[" + REQUEST[:18] + b"]")

    def test_a_server_that_does_not_answer_is_reached_by_tcp_within_the_time_of_the_rule(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        port = str(silent.getsockname()[1])
        client = self.start_python(CLIENT, port, "word", "read", rules="use try client * *:* answer=200")
        first, _ = silent.accept()
        second, _ = silent.accept()
        self.assertEqual(second.recv(100), b"word")
        second.sendall(b"by tcp")
        self.assertEqual(self.finish(client)[0], "by tcp\n")
        self.assertTrue(first.recv(100).startswith(b"MPA ID Req Frame"))
        first.close()
        second.close()

    def test_a_server_that_has_spoken_already_is_asked_nothing(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        port = str(listener.getsockname()[1])
        rules = "use try client * *:*"
        # A connect that does not wait is decided at the first call behind it, when the word is there.
        late = CLIENT.replace(
            's = socket.create_connection(("127.0.0.1", int(sys.argv[1])))',
            's = socket.socket(); s.setblocking(False); s.connect_ex(("127.0.0.1", int(sys.argv[1])))\n'
            "sys.stdin.readline(); s.setblocking(True)",
        )
        client = self.start_python(late, port, "read", "word", "read", rules=rules, stdin=subprocess.PIPE)
        server, _ = listener.accept()
        self.addCleanup(server.close)
        server.sendall(b"220 hello")
        client.stdin.write("\n")
        client.stdin.flush()
        self.assertEqual(server.recv(100), b"word", "nothing of SDP came before it")
        server.sendall(b"bye")
        self.assertEqual(self.finish(client)[0], "220 hello\nbye\n")

    def test_a_client_sends_nothing_of_sdp_to_a_host_that_is_not_known(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        client = self.start_python(CLIENT, str(listener.getsockname()[1]), "word", "read")
        server, _ = listener.accept()
        self.assertEqual(server.recv(100), b"word")
        server.sendall(b"plain")
        self.assertEqual(self.finish(client)[0], "plain\n")
        server.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
