#!/usr/bin/env python3
"""Connections that go directly: what the number shows, and how they come to be relayed with no byte lost."""

import sys
import unittest

from support import BOTH, SwitchTest

ENDS = """
import array, ctypes, errno, fcntl, os, random, select, signal, socket, struct, subprocess, sys, tempfile, termios, threading, time
l = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(l.getsockname()); b, _ = l.accept()
def meet():
    a.sendall(b"hello"); assert b.recv(5) == b"hello"
    b.sendall(b"there"); assert a.recv(5) == b"there"
def exactly(s, n):
    got = b""
    while len(got) < n:
        d = s.recv(n - len(got)); assert d, (len(got), n); got += d
    return got
def unread(s): return struct.unpack("i", fcntl.ioctl(s.fileno(), termios.FIONREAD, bytes(4)))[0]
def shows(s, events=select.POLLIN | select.POLLOUT | select.POLLRDHUP, wait=0):
    p = select.poll(); p.register(s, events)
    return dict(p.poll(wait)).get(s.fileno(), 0)
IN, OUT, RDHUP, HUP, ERR = select.POLLIN, select.POLLOUT, select.POLLRDHUP, select.POLLHUP, select.POLLERR
"""
# Before it moves, each end has sent what the other has not read.
BEFORE = """
meet()
x, y = random.Random(1).randbytes(100000), random.Random(2).randbytes(100000)
a.sendall(x[:50000]); assert exactly(b, 100) == x[:100]
b.sendall(y[:50000]); assert exactly(a, 7) == y[:7]
"""
AFTER = """
t = threading.Thread(target=lambda: a.sendall(x[50000:])); t.start()
assert exactly(b, 99900) == x[100:]; t.join()
t = threading.Thread(target=lambda: b.sendall(y[50000:])); t.start()
assert exactly(a, 99993) == y[7:]; t.join()
meet()
a.close(); assert b.recv(1) == b""; b.close()
print("exact")
"""


class DirectTest(SwitchTest):
    def run_ends(self, text, relayed=0, output="exact\n"):
        env = self.environment(BOTH, ESDP_SWITCH_MODE="direct")
        self.assertEqual(self.finish(self.start_python(ENDS + text, env=env))[0], output)
        log = self.log_text()
        self.assertEqual(log.count("goes directly"), 2, log)
        self.assertEqual(log.count("is relayed from here on"), relayed, log)
        self.log.unlink()

    def test_bytes_go_directly(self):
        self.run_ends(BEFORE + AFTER)

    def test_the_log_tells_the_end_of_what_a_program_ends_with(self):
        for end in ("sys.exit()", "os._exit(0)"):
            env = self.environment(BOTH, ESDP_SWITCH_MODE="direct")
            self.finish(self.start_python(ENDS + "meet(); " + end, env=env))
            self.assertEqual(sorted((each.side, each.sdp, each.tcp) for each in self.moved()), [("accepted", 10, 0), ("connected", 10, 0)], self.log_text())
            self.log.unlink()

    def test_a_rule_says_so(self):
        rules = "use both server * *:* mode=direct;use both client * *:* mode=direct"
        self.finish(self.start_python(ENDS + "meet()", rules=rules))
        self.assertEqual(self.log_text().count("goes directly"), 2)
        self.log.unlink()
        env = self.environment(rules, ESDP_SWITCH_MODE="relay")
        self.finish(self.start_python(ENDS + "meet()", env=env))
        self.assertNotIn("goes directly", self.log_text())

    def test_poll_shows_what_can_be_done(self):
        self.run_ends(
            """
meet()
assert shows(a) == OUT and shows(b) == OUT
a.sendall(b"xyz"); assert shows(b, IN, 5000) == IN and shows(b) == IN | OUT
assert b.recv(1) == b"x" and shows(b) == IN | OUT and unread(b) == 2
assert b.recv(9) == b"yz" and shows(b) == OUT and unread(b) == 0
assert select.select([b], [b], [], 0) == ([], [b], [])
b.shutdown(socket.SHUT_WR); assert shows(a, IN | RDHUP, 5000) == IN | RDHUP and shows(a) == IN | OUT | RDHUP
a.sendall(b"more"); assert shows(b, IN, 5000) == IN and b.recv(9) == b"more"
a.shutdown(socket.SHUT_WR); assert shows(b, HUP, 5000) & HUP
print("exact")
"""
        )

    def test_epoll_tells_by_level_edge_once_and_to_one(self):
        self.run_ends(
            """
meet(); b.setblocking(False)
level, edge, once, one = (select.epoll() for _ in range(4))
level.register(b, select.EPOLLIN); edge.register(b, select.EPOLLIN | select.EPOLLET)
once.register(b, select.EPOLLIN | select.EPOLLONESHOT); one.register(b, select.EPOLLIN | select.EPOLLEXCLUSIVE)
outer = select.epoll(); outer.register(level, select.EPOLLIN)
told = [(b.fileno(), select.EPOLLIN)]
assert [e.poll(0) for e in (level, edge, once, one, outer)] == [[]] * 5
a.sendall(b"xy")
assert level.poll(5) == told and edge.poll(5) == told and once.poll(5) == told and one.poll(5) == told and outer.poll(5)
assert b.recv(1) == b"x"
assert level.poll(0) == told and edge.poll(0) == [] and once.poll(0) == [] and one.poll(0) == told
a.sendall(b"z"); assert edge.poll(5) == told
assert exactly(b, 2) == b"yz" and level.poll(0) == [] and one.poll(0) == [] and outer.poll(0) == []
once.modify(b, select.EPOLLIN | select.EPOLLONESHOT); assert once.poll(0) == []
a.sendall(b"!"); assert once.poll(5) == told
print("exact")
"""
        )

    def test_who_reads_by_edges_until_a_short_read_never_sleeps_with_bytes_there(self):
        self.run_ends(
            """
meet(); b.setblocking(False); draw = random.Random(5)
e = select.epoll(); e.register(b, select.EPOLLIN | select.EPOLLET)
sizes = [draw.choice((1, 7, 100, 1500, 4096, 20000)) for _ in range(5000)]
def send():
    for n in sizes: a.sendall(bytes(n))
    a.shutdown(socket.SHUT_WR)
t = threading.Thread(target=send); t.start()
got, ended = 0, False
while not ended:
    assert e.poll(20), got
    while True:
        try: d = b.recv(4096)
        except BlockingIOError: break
        got += len(d); ended = d == b""
        if len(d) < 4096: break
t.join(); assert got == sum(sizes), (got, sum(sizes))
print("exact")
"""
        )

    def test_a_full_sender_is_told_when_there_is_room(self):
        self.run_ends(
            """
meet(); a.setblocking(False); sent = 0
try:
    while True: sent += a.send(bytes(100000))
except BlockingIOError: pass
assert shows(a, OUT) == 0
before = time.process_time(); assert shows(a, OUT, 200) == 0; assert time.process_time() - before < 0.1
t = threading.Thread(target=lambda: exactly(b, sent)); t.start()
assert shows(a, OUT, 5000) == OUT; t.join()
print("exact")
"""
        )

    def test_flags_of_a_read(self):
        self.run_ends(
            """
meet()
a.sendall(b"abcdef"); assert shows(b, IN, 5000) == IN
assert b.recv(3, socket.MSG_PEEK) == b"abc" and b.recv(9, socket.MSG_PEEK) == b"abcdef" and unread(b) == 6
assert b.recv(2) == b"ab" and b.recv(2, socket.MSG_TRUNC) and b.recv(9, socket.MSG_DONTWAIT) == b"ef"
try: b.recv(1, socket.MSG_DONTWAIT); raise SystemExit("bytes")
except BlockingIOError: pass
def later():
    for part in (b"1" * 10, b"2" * 10, b"3" * 10): time.sleep(0.05); a.sendall(part)
t = threading.Thread(target=later); t.start()
assert b.recv(30, socket.MSG_WAITALL) == b"1" * 10 + b"2" * 10 + b"3" * 10; t.join()
buffers = [bytearray(3), bytearray(4)]
a.sendmsg([b"01", b"", b"23456"]); assert shows(b, IN, 5000)
n, control, flags, address = b.recvmsg_into(buffers); assert (n, control, flags) == (7, [], 0) and buffers == [b"012", b"3456"]
assert a.send(b"") == 0 and b.recv(0) == b""
a.shutdown(socket.SHUT_WR); assert b.recv(5, socket.MSG_WAITALL) == b"" and b.recv(1) == b""
try: a.send(b"x", socket.MSG_NOSIGNAL); raise SystemExit("sent")
except BrokenPipeError: pass
b.shutdown(socket.SHUT_RD)
print("exact")
"""
        )

    def test_a_fork_relays_what_both_go_on_with(self):
        self.run_ends(
            BEFORE
            + """
pid = os.fork()
if pid == 0:
    a.sendall(x[50000:60000]); assert exactly(b, 900) == x[100:1000]; os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
t = threading.Thread(target=lambda: a.sendall(x[60000:])); t.start()
assert exactly(b, 99000) == x[1000:]; t.join()
b.sendall(y[50000:]); assert exactly(a, 99993) == y[7:]
print("exact")
""",
            relayed=2,
        )

    def test_a_fork_while_others_wait_in_a_read_and_in_a_poll(self):
        self.run_ends(
            """
meet(); got, seen = [], []
r = threading.Thread(target=lambda: got.append(exactly(b, 6))); r.start()
p = threading.Thread(target=lambda: seen.append(shows(a, IN, 10000))); p.start()
time.sleep(0.2)
pid = os.fork()
if pid == 0: os._exit(0)
os.waitpid(pid, 0); time.sleep(0.1); assert r.is_alive() and p.is_alive()
a.sendall(b"abc"); a.sendall(b"def"); r.join(); assert got == [b"abcdef"]
b.sendall(b"z"); p.join(); assert seen == [IN] and a.recv(9) == b"z"
print("exact")
""",
            relayed=2,
        )

    def test_a_fork_behind_the_peers_end(self):
        self.run_ends(
            """
meet(); e = select.epoll(); e.register(b, select.EPOLLIN | select.EPOLLRDHUP)
a.sendall(b"last"); a.shutdown(socket.SHUT_WR)
while not dict(e.poll(5)).get(b.fileno(), 0) & select.EPOLLRDHUP: pass
assert b.recv(1) == b"l"
pid = os.fork()
if pid == 0:
    b.sendall(b"answer of " + exactly(b, 3)); assert b.recv(1) == b""; os._exit(0)
os.waitpid(pid, 0)
assert exactly(a, 13) == b"answer of ast"; assert e.poll(5)
b.close(); assert a.recv(1) == b""
print("exact")
""",
            relayed=2,
        )

    def test_stdio_sendfile_and_splice_relay(self):
        for act in (
            "libc = ctypes.CDLL(None); libc.fdopen.restype = ctypes.c_void_p; libc.fdopen(a.fileno(), b'r+')",
            "f = tempfile.TemporaryFile(); os.sendfile(a.fileno(), f.fileno(), 0, 1)",
            "r, w = os.pipe(); os.write(w, x[50000:50001]); assert os.splice(r, a.fileno(), 1) == 1; x = x[:50000] + x[50000:]",
        ):
            after = AFTER.replace("x[50000:]", "x[50001:]", 1) if "splice" in act else AFTER
            self.run_ends(BEFORE + act + after, relayed=1)

    def test_passing_on_relays(self):
        self.run_ends(
            BEFORE
            + """
mine, its = socket.socketpair(); socket.send_fds(mine, [b"x"], [a.fileno()])
_, (copy,), _, _ = socket.recv_fds(its, 1, 1); a.close(); a = socket.socket(fileno=copy)
"""
            + AFTER,
            relayed=1,
        )

    # As Java does it.
    def test_who_waits_in_a_read_goes_on_with_what_is_put_under_the_number(self):
        for act, what in (("os.dup2(x.fileno(), a.fileno())", "b''"), ("os.close(a.detach())", "Bad file descriptor")):
            env = self.environment(BOTH, ESDP_SWITCH_MODE="direct")
            text = f"""
meet()
x, y = socket.socketpair(); x.shutdown(socket.SHUT_RDWR)
signal.signal(signal.SIGUSR1, lambda *_: None); signal.siginterrupt(signal.SIGUSR1, True)
number = a.fileno()
def read():
    try: print(os.read(number, 9))
    except OSError as e: print(e.strerror)
reader = threading.Thread(target=read); reader.start(); time.sleep(0.1)
{act}; signal.pthread_kill(reader.ident, signal.SIGUSR1); reader.join(); print(b.recv(9))
"""
            for _ in range(5):
                self.assertEqual(self.finish(self.start_python(ENDS + text, env=env))[0], f"{what}\nb''\n")

    def test_an_undecided_one_that_is_passed_on_is_looked_at(self):
        text = """
import os, socket, subprocess, sys
text = "import socket; u = socket.socket(fileno=0); _, (c,), _, _ = socket.recv_fds(u, 1, 1); " \\
    "s = socket.socket(fileno=c); s.sendall(b'[' + s.recv(100) + b']')"
plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
l = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(l.getsockname()); b, _ = l.accept()
mine, its = socket.socketpair(); child = subprocess.Popen([sys.executable, "-c", text], stdin=its, env=plain)
a.sendall(b"early"); socket.send_fds(mine, [b"x"], [b.fileno()]); b.close()
print(a.recv(100).decode(), child.wait())
"""
        for mode in ("relay", "direct"):
            env = self.environment(ESDP_SWITCH_MODE=mode)
            self.assertEqual(self.finish(self.start_python(text, env=env))[0], "[early] 0\n")

    def test_a_message_that_is_wrong_about_what_it_passes_on_is_left_to_the_system(self):
        text = """
import ctypes, errno, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
l = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(l.getsockname()); b, _ = l.accept()
mine, its = socket.socketpair()
byte = ctypes.create_string_buffer(b"x", 1)
piece = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(byte), 1))
for length in (0, 15, 1 << 40):
    rights = struct.pack("Nii", length, socket.SOL_SOCKET, socket.SCM_RIGHTS) + struct.pack("i", b.fileno())
    control = ctypes.create_string_buffer(rights.ljust(24, b"\\0"), 24)
    message = struct.pack("PIPNPNi", 0, 0, ctypes.addressof(piece), 1, ctypes.addressof(control), 24, 0)
    sent = libc.sendmsg(mine.fileno(), ctypes.create_string_buffer(message), 0)
    print(sent, errno.errorcode[ctypes.get_errno()])
"""
        output = self.finish(self.start_python(text, env=self.environment(ESDP_SWITCH_MODE="direct")))[0]
        self.assertEqual(output, "-1 EINVAL\n" * 3)

    def test_a_program_that_is_executed_has_what_was_unread(self):
        self.run_ends(
            """
meet(); a.sendall(b"one two"); assert exactly(b, 4) == b"one "
child = subprocess.Popen(["cat"], stdin=b, stdout=b); b.close()
a.sendall(b" three"); a.shutdown(socket.SHUT_WR)
assert exactly(a, 9) == b"two three" and a.recv(1) == b"" and child.wait() == 0
print("exact")
""",
            relayed=1,
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
