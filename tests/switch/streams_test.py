#!/usr/bin/env python3
"""Programs under the switch: bytes, ends and errors come as TCP has them, and go by SDP."""

import sys
import unittest

from support import BOTH, SwitchTest

ECHO = """
import socket, sys
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1])
for _ in range(int(sys.argv[1])):
    c, _ = l.accept()
    while d := c.recv(1 << 16): c.sendall(d)
    c.close()
"""
COUNT = """
import socket, sys, threading
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); n = int(sys.argv[2])
def send(): s.sendall(bytes(range(256)) * (n // 256)); s.shutdown(socket.SHUT_WR)
t = threading.Thread(target=send); t.start()
got = b"".join(iter(lambda: s.recv(1 << 16), b"")); t.join()
print(len(got), got == bytes(range(256)) * (n // 256))
"""
# Each has the two ends: `a` has connected, `b` was accepted.
ENDS = """
import errno, fcntl, os, select, signal, socket, struct, sys, termios, threading, time
l = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(l.getsockname()); b, b_from = l.accept()
def switched(s): return os.readlink(f"/proc/self/fd/{s.fileno()}"), socket.socket(fileno=os.dup(s.fileno())).family
def is_pair(s): return f"{os.stat(s.fileno()).st_ino}" in unix_inodes()
def unix_inodes(): return {line.split()[6] for line in open("/proc/net/unix").readlines()[1:]}
def meet():
    a.sendall(b"hello"); assert b.recv(5) == b"hello"
    b.sendall(b"there"); assert a.recv(5) == b"there"
    assert is_pair(a) and is_pair(b), "not switched"
"""


class StreamsTest(SwitchTest):
    def run_ends(self, text, code=0, **keywords):
        return self.finish(self.start_python(ENDS + text, **keywords), code)[0]

    def test_bytes_go_by_sdp_and_come_back_as_they_were(self):
        server, port = self.start_python(ECHO, "1", listens=True)
        output, _ = self.finish(self.start_python(COUNT, port, str(1 << 24)))
        self.assertEqual(output.split(), [str(1 << 24), "True"])
        self.finish(server)
        self.assertEqual([(each.sdp, each.tcp) for each in self.moved()], [(2 << 24, 0)] * 2)

    def test_a_plain_client_of_a_switched_server_stays_plain(self):
        server, port = self.start_python(ECHO, "1", listens=True)
        output, _ = self.finish(self.start_python(COUNT, port, str(1 << 20), switched=False))
        self.assertEqual(output.split(), [str(1 << 20), "True"])
        self.finish(server)
        self.assertEqual(self.moved(), [])

    def test_a_switched_client_of_a_plain_server_stays_plain(self):
        server, port = self.start_python(ECHO, "1", listens=True, switched=False)
        output, _ = self.finish(self.start_python(COUNT, port, str(1 << 20)))
        self.assertEqual(output.split(), [str(1 << 20), "True"])
        self.finish(server)
        self.assertEqual(self.moved(), [])

    # To the old server the request is bytes that it echoes.
    def test_a_client_that_tries_connects_anew_where_the_answer_is_no_sdp(self):
        server, port = self.start_python(ECHO, "2", listens=True, switched=False)
        output, _ = self.finish(self.start_python(COUNT, port, str(1 << 20), rules="use try client * *:*"))
        self.assertEqual(output.split(), [str(1 << 20), "True"])
        self.finish(server)
        self.assertEqual([(each.sdp, each.tcp) for each in self.moved()], [(0, 2 << 20)])

    def test_a_client_that_takes_nothing_but_sdp_is_reset_by_a_plain_server(self):
        server, port = self.start_python(ECHO, "1", listens=True, switched=False)
        text = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
try: print(s.recv(1))
except ConnectionResetError: print("reset")
"""
        output, _ = self.finish(self.start_python(text, port, rules="use sdp client * *:*"))
        self.assertEqual(output, "reset\n")
        self.finish(server)

    def test_a_server_that_takes_nothing_but_sdp_closes_plain_connections(self):
        server, port = self.start_python(ECHO, "1", listens=True, rules="use sdp server * *:*")
        text = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.sendall(b"plain")
try: print(s.recv(1))
except ConnectionResetError: print("reset")
"""
        output, _ = self.finish(self.start_python(text, port, switched=False))
        self.assertIn(output, ("reset\n", "b''\n"))
        self.finish(server)

    # More than either path throws away at once.
    def test_bytes_that_are_discarded_are_counted_as_tcp_counts_them(self):
        output = self.run_ends(
            """
meet()
total = 200000
def later():
    for _ in range(4): time.sleep(0.05); a.sendall(bytes(total // 4))
    a.sendall(b"next")
t = threading.Thread(target=later); t.start()
print(len(b.recv(total, socket.MSG_TRUNC | socket.MSG_WAITALL)), b.recv(4, socket.MSG_WAITALL)); t.join()
a.sendall(b"peek"); select.select([b], [], [])
print(len(b.recv(100000, socket.MSG_TRUNC | socket.MSG_PEEK)), b.recv(9))
a.sendall(bytes(50000)); a.shutdown(socket.SHUT_WR)
print(len(b.recv(total, socket.MSG_TRUNC | socket.MSG_WAITALL)), b.recv(1))
"""
        )
        self.assertEqual(output, "200000 b'next'\n4 b'peek'\n50000 b''\n")

    # As libuv closes, and with it node.
    def test_calls_by_number_are_the_calls(self):
        output = self.run_ends(
            """
import ctypes
meet()
libc, room = ctypes.CDLL(None), ctypes.create_string_buffer(100)
CLOSE, READ, WRITE = (57, 63, 64) if os.uname().machine == "aarch64" else (3, 0, 1)
assert libc.syscall(WRITE, a.fileno(), b"word", ctypes.c_size_t(4)) == 4 and b.recv(9) == b"word"
b.sendall(b"back"); select.select([a], [], [], 5)
print(libc.syscall(READ, a.fileno(), room, ctypes.c_size_t(100)), room.value)
assert libc.syscall(CLOSE, a.detach()) == 0 and b.recv(9) == b""
a = socket.create_connection(l.getsockname()); b, _ = l.accept(); meet()
a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
assert libc.syscall(CLOSE, a.detach()) == 0
try: b.recv(9)
except ConnectionResetError: print("reset")
"""
        )
        self.assertEqual(output, "4 b'back'\nreset\n")

    def test_waits_by_number_see_what_comes(self):
        output = self.run_ends(
            """
import ctypes, threading
libc, time_left = ctypes.CDLL(None), (ctypes.c_long * 2)(20, 0)
def waits(what, number, *words):
    a.sendall(b"?"); assert b.recv(1) == b"?"; time.sleep(0.3)  # until it goes directly: nobody has waited for `a` yet
    sent = threading.Timer(0.2, b.sendall, [b"word"]); sent.start()
    print(what, libc.syscall(number, *words, time_left, None, ctypes.c_size_t(8)), a.recv(9)); sent.join()
def set_of(fd): return (ctypes.c_ulong * 16)(*(1 << fd % 64 if fd // 64 == i else 0 for i in range(16)))
arm = os.uname().machine == "aarch64"
waits("ppoll", 73 if arm else 271, struct.pack("ihh", a.fileno(), select.POLLIN, 0), ctypes.c_size_t(1))
b.close(); a.close(); a = socket.create_connection(l.getsockname()); b, _ = l.accept()
waits("pselect", 72 if arm else 270, a.fileno() + 1, set_of(a.fileno()), None, None)
"""
        )
        self.assertEqual(output, "ppoll 1 b'word'\npselect 1 b'word'\n")

    # Its next file has the number, and would be taken for what the set still tells of the one before.
    def test_what_is_closed_has_left_the_epoll_set(self):
        output = self.run_ends(
            """
ep = select.epoll()
for ends in range(20):
    meet(); ep.register(b, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP)
    assert ep.poll(10) == [(b.fileno(), select.EPOLLOUT)]
    if ends % 2: a.shutdown(socket.SHUT_WR); assert b.recv(9) == b""
    b.close(); left = ep.poll(0)
    if left: print("left", ends, left)
    a.close(); a = socket.create_connection(l.getsockname()); b, _ = l.accept()
"""
        )
        self.assertEqual(output, "")

    # Whoever closes by a call that nobody sees leaves a number that may be any file's next.
    def test_a_number_that_was_closed_unseen_is_that_of_the_file_that_has_it_now(self):
        output = self.run_ends(
            """
import ctypes
meet()
libc = ctypes.CDLL("libc.so.6")  # its own call
open("file", "w").write("of the file")
def pipe():
    r, w = os.pipe(); os.write(w, b"of the file"); os.close(w); return r
def pair():
    here, there = socket.socketpair(); there.send(b"of the file"); return here.detach()
for make in (lambda: os.open("file", os.O_RDONLY), pipe, pair, lambda: os.open("file", os.O_RDONLY, dir_fd=folder)):
    folder = os.open(".", os.O_RDONLY)
    a = socket.create_connection(l.getsockname()); b, _ = l.accept(); meet(); a.sendall(b"of the connection")
    select.select([b], [], [], 5); number = b.detach()
    assert libc.syscall(3, number) == 0  # close
    held = []  # lower numbers that are free by now
    while (made := make()) != number:  # a thread of ours may have it for a moment
        if made < number: held.append(made)
        else: os.close(made)
    assert os.read(made, 99) == b"of the file"
    for each in (*held, made, folder): os.close(each)
    a.close()
print("its own")
""",
            cwd=self.folder,
        )
        self.assertEqual(output, "its own\n")

    def test_names_and_options_are_those_of_tcp(self):
        output = self.run_ends(
            """
before = a.getsockname(), a.getpeername(), b_from
meet()
assert before == (a.getsockname(), a.getpeername(), b.getpeername()), before
assert b.getsockname() == l.getsockname()
for s in (a, b):
    o = lambda level, name: s.getsockopt(level, name)
    assert o(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_INET
    assert o(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP
    assert o(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
    assert o(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert o(socket.IPPROTO_TCP, socket.TCP_MAXSEG) > 500
    assert s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)[0] == 1
    assert s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).strip(bytes(1)) in (b"cubic", b"reno", b"bbr")
    for name in (socket.TCP_NODELAY, socket.TCP_CORK):
        s.setsockopt(socket.IPPROTO_TCP, name, 1); assert o(socket.IPPROTO_TCP, name) == 1
        s.setsockopt(socket.IPPROTO_TCP, name, 0); assert o(socket.IPPROTO_TCP, name) == 0
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1); assert o(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    for level, name in ((socket.IPPROTO_TCP, 31), (socket.SOL_SOCKET, 60)):  # TCP_ULP, SO_ZEROCOPY
        try: s.setsockopt(level, name, b"tls" + bytes(1)); raise SystemExit("taken")
        except OSError as e: assert e.errno == errno.EOPNOTSUPP, e
def refused(act, error):
    try: act(); raise SystemExit("taken")
    except OSError as e: assert e.errno == error, e
refused(lambda: a.connect(l.getsockname()), errno.EISCONN)
refused(lambda: a.bind(("127.0.0.1", 0)), errno.EINVAL)
refused(lambda: a.listen(), errno.EINVAL)
a.sendto(b"addressed", l.getsockname()); assert b.recvfrom(9) in ((b"addressed", None), (b"addressed", ""))
print("same")
"""
        )
        self.assertEqual(output, "same\n")

    def test_a_time_to_linger_is_kept_and_no_address_comes_with_bytes(self):
        output = self.run_ends(
            """
meet()
a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 7))
print(struct.unpack("ii", a.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)))
for _ in range(2):
    a.sendall(b"x"); print(b.recvfrom(1), b.recvmsg(1)[3] if a.send(b"x") else None)
    if os.fork() == 0: os._exit(0)  # it is relayed from then on
"""
        )
        self.assertEqual(output, "(1, 7)\n(b'x', None) None\n(b'x', None) None\n")

    def test_each_direction_ends_by_itself(self):
        output = self.run_ends(
            """
meet()
a.sendall(b"last"); a.shutdown(socket.SHUT_WR)
assert b.recv(10) == b"last" and b.recv(10) == b""
assert select.select([], [a], [], 10)[1] == [a]  # a write would not wait
b.sendall(b"more"); assert a.recv(10) == b"more"
b.close(); assert a.recv(10) == b""
print("ended")
"""
        )
        self.assertEqual(output, "ended\n")

    def test_a_shutdown_of_reading_ends_the_waits_for_what_comes(self):
        # By another thread, as programs end those that they do not know how to interrupt.
        text = """
def wait(s, way):
    if way == "recv": return s.recv(5)
    if way == "all": return s.recv(5, socket.MSG_WAITALL)
    if way == "select": return len(select.select([s], [], [], 20)[0])
    if way == "poll": p = select.poll(); p.register(s, select.POLLIN); return p.poll(20000)[0][1] & select.POLLIN
    with select.epoll() as e: e.register(s, select.EPOLLIN); return e.poll(20)[0][1] & select.EPOLLIN
for how in (socket.SHUT_RD, socket.SHUT_RDWR):
    for way in ("recv", "all", "select", "poll", "epoll"):
        for later in (0, 0.05):
            c = socket.create_connection(l.getsockname()); d, _ = l.accept()
            c.sendall(b"x"); d.recv(1); d.sendall(b"y"); c.recv(1)
            got = []; t = threading.Thread(target=lambda: got.append(wait(c, way))); t.start()
            time.sleep(later); c.shutdown(how); t.join(10); print(how, way, got, t.is_alive())
            c.close(); d.close()
meet()
b.sendall(b"before"); select.select([a], [], [], 10); a.shutdown(socket.SHUT_RD)
print(a.recv(3), a.recv(9), a.recv(9), a.send(b"on"), b.recv(9))
"""
        self.assertEqual(self.run_ends(text), self.run_ends("def is_pair(s): return True\n" + text, switched=False))

    def test_what_stdio_has_closed_is_not_the_last_number_of_a_connection(self):
        output = self.run_ends(
            """
import ctypes
c = ctypes.CDLL(None); c.fdopen.restype = ctypes.c_void_p
meet()
file = ctypes.c_void_p(c.fdopen(os.dup(a.fileno()), b"r+")); assert c.fputs(b"stdio", file) >= 0 and c.fclose(file) == 0
assert b.recv(5, socket.MSG_WAITALL) == b"stdio"
a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); a.close()
try: print(b.recv(1))
except ConnectionResetError: print("reset")
"""
        )
        self.assertEqual(output, "reset\n")

    def test_a_writer_that_comes_first_is_told_of_the_reset(self):
        # And gets no signal, which a write behind that does.
        text = """
hits = []; signal.signal(signal.SIGPIPE, lambda *_: hits.append(1))
meet(); a.sendall(b"x"); b.recv(1)
if sys.argv[1:] == ["forks"] and os.fork() == 0: os._exit(0)  # it is relayed from then on
a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); a.close()
p = select.poll(); p.register(b, select.POLLERR); p.poll(10000)
for i in range(2):
    try: print(os.write(b.fileno(), b"x"))
    except OSError as e: print(errno.errorcode[e.errno])
    time.sleep(0.01); print(len(hits))
print(b.recv(1))
"""
        for arguments in ((), ("forks",)):
            output = self.finish(self.start_python(ENDS + text, *arguments))[0]
            self.assertEqual(output, "ECONNRESET\n0\nEPIPE\n1\nb''\n", arguments)

    def test_bytes_unread_at_a_close_and_a_linger_of_nothing_reset_the_peer(self):
        for end in (
            "b.sendall(b'unread'); time.sleep(0.2); a.close(); s = b",
            "b.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); b.close(); s = a",
        ):
            text = f"""
meet()
{end}
try:
    while s.recv(10): pass
    print("end")
except ConnectionResetError: print("reset")
"""
            self.assertEqual(self.run_ends(text), "reset\n", end)

    def test_a_write_behind_the_peers_close_ends_with_epipe_or_a_reset(self):
        output = self.run_ends(
            """
meet()
a.close()
assert b.recv(10) == b""
try:
    for _ in range(100): b.send(b"x"); time.sleep(0.05)
    print("taken")
except (BrokenPipeError, ConnectionResetError): print("refused")
"""
        )
        self.assertEqual(output, "refused\n")

    def test_what_an_epoll_set_watches_for_nothing_stays_in_it(self):
        # As slapd does while one of its threads reads.
        output = self.run_ends(
            """
sets = [select.epoll() for _ in range(2)]
for e in sets: e.register(b, select.EPOLLIN)
assert sets[1].poll(20), "the request for SDP"
sets[0].modify(b, 0); b.setblocking(False)
try: b.recv(1); print("a byte")
except BlockingIOError: pass
a.sendall(b"x"); assert sets[1].poll(20) == [(b.fileno(), select.EPOLLIN)] and sets[0].poll(0) == []
sets[0].modify(b, select.EPOLLIN); assert sets[0].poll(20) == [(b.fileno(), select.EPOLLIN)]
assert b.recv(10) == b"x"
sets[0].unregister(b)
print("same")
"""
        )
        self.assertEqual(output, "same\n")

    def test_epoll_ctl_refuses_memory_that_is_none(self):
        output = self.run_ends(
            """
import ctypes
a.sendall(b"x"); b.recv(1); e = select.epoll(); libc = ctypes.CDLL(None, use_errno=True)
for event in (None, ctypes.c_void_p(8)):
    print(libc.epoll_ctl(e.fileno(), 1, b.fileno(), event), errno.errorcode[ctypes.get_errno()])
e.register(b, select.EPOLLIN)
"""
        )
        self.assertEqual(output, "-1 EFAULT\n" * 2)

    def test_an_epoll_set_goes_on_with_what_it_was_told_before(self):
        output = self.run_ends(
            """
e = select.epoll(); e.register(a, select.EPOLLIN | select.EPOLLET); e.register(b, select.EPOLLIN)
one = select.epoll(); one.register(b, select.EPOLLIN | select.EPOLLONESHOT)
a.sendall(b"x")
assert e.poll(5) == [(b.fileno(), select.EPOLLIN)] and one.poll(5)
b.setblocking(False)
while True:
    try: assert b.recv(5) == b"x"; break
    except BlockingIOError: e.poll(5)
assert is_pair(a) and is_pair(b)
assert one.poll(0) == [], "it has fired"
for i in range(100):
    b.sendall(b"y"); assert e.poll(5) == [(a.fileno(), select.EPOLLIN)], i
    assert a.recv(5) == b"y"
a.sendall(b"z"); assert e.poll(5) == [(b.fileno(), select.EPOLLIN)]; assert one.poll(0.1) == []
one.modify(b, select.EPOLLIN | select.EPOLLONESHOT); assert one.poll(5)
e.modify(b, select.EPOLLOUT); assert e.poll(5)
e.unregister(b); e.unregister(a)
print("same")
"""
        )
        self.assertEqual(output, "same\n")

    def test_a_connect_that_does_not_wait_is_registered_before(self):
        output = self.finish(
            self.start_python(
                """
import os, select, socket
l = socket.create_server(("127.0.0.1", 0))
s = socket.socket(); s.setblocking(False)
e = select.epoll(); e.register(s, select.EPOLLOUT | select.EPOLLIN | select.EPOLLET)
s.connect_ex(l.getsockname())
assert any(fd == s.fileno() and events & select.EPOLLOUT for fd, events in e.poll(5))
assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
b, _ = l.accept(); s.send(b"hello"); assert b.recv(5) == b"hello"; b.sendall(b"there")
while not any(events & select.EPOLLIN for _, events in e.poll(5)): pass
assert s.recv(5) == b"there"
print("same")
"""
            )
        )[0]
        self.assertEqual(output, "same\n")
        self.assertEqual(len(self.moved()), 2)

    def test_errors_of_a_connect_are_those_of_tcp(self):
        text = """
import errno, socket
l = socket.create_server(("127.0.0.1", 0)); where = l.getsockname(); l.close()
s = socket.socket(); print(errno.errorcode[s.connect_ex(where)])
s = socket.socket(); s.setblocking(False); print(errno.errorcode[s.connect_ex(where)])
s = socket.socket(); print(errno.errorcode.get(s.connect_ex(("127.0.0.1", 0)), "0"))
try: socket.socket().recv(1)
except OSError as e: print(errno.errorcode[e.errno])
"""
        plain = self.finish(self.start_python(text, switched=False))[0]
        for rules in (BOTH, "use sdp client * *:*"):
            self.assertEqual(self.finish(self.start_python(text, rules=rules))[0], plain)

    def test_copies_of_a_number_are_one_connection(self):
        output = self.run_ends(
            """
c = os.dup(a.fileno()); d = 200; os.dup2(b.fileno(), d)
meet()
os.write(c, b"by a copy"); assert os.read(d, 20) == b"by a copy"
a.close(); os.write(c, b"still"); assert b.recv(20) == b"still"
os.close(c); assert b.recv(20) == b"" and os.read(d, 20) == b""
print("one")
"""
        )
        self.assertEqual(output, "one\n")

    def test_sendfile_splice_and_stdio_move_bytes_by_sdp(self):
        output = self.run_ends(
            """
import tempfile, ctypes
f = tempfile.TemporaryFile(); f.write(bytes(100000)); f.flush()
done = 0
while done < 100000: done += os.sendfile(a.fileno(), f.fileno(), done, 100000 - done)
got = 0
r, w = os.pipe()
while got < 100000:
    n = os.splice(b.fileno(), w, 60000); got += len(os.read(r, n))
libc = ctypes.CDLL(None, use_errno=True); libc.fdopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fdopen(b.fileno(), b"w"))
libc.fputs(b"a line", stream); libc.fflush(stream)
assert a.recv(20) == b"a line" and is_pair(a) and is_pair(b)
print("moved")
"""
        )
        self.assertEqual(output, "moved\n")
        self.assertEqual([each.sdp for each in self.moved()], [100006] * 2)

    def test_stdio_before_the_first_byte_is_relayed_until_it_is_known(self):
        output = self.run_ends(
            """
import ctypes
libc = ctypes.CDLL(None); libc.fdopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fdopen(b.fileno(), b"r"))
a.sendall(b"a line\\n")
line = ctypes.create_string_buffer(20); libc.fgets(line, 20, stream)
assert line.value == b"a line\\n" and is_pair(a) and is_pair(b)
b.sendall(b"there"); assert a.recv(5) == b"there"
print("known")
"""
        )
        self.assertEqual(output, "known\n")

    def test_times_to_wait_hold(self):
        output = self.run_ends(
            """
b.settimeout(None); b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 1, 0))
for switched in (False, True):
    try: b.recv(1); print("bytes")
    except BlockingIOError: print("late")
    if not switched: meet()
assert struct.unpack("ll", b.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16)) == (1, 0)
"""
        )
        self.assertEqual(output, "late\nlate\n")

    def test_options_from_before_hold_whoever_has_set_them(self):
        output = self.run_ends(
            """
TIME = struct.pack("ll", 0, 200000)
def time_of(s): return s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16)
def no_delay(s): return s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
def late(s):
    try: s.recv(1)
    except BlockingIOError: return True
def here(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, TIME)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def by_copy(s):
    copy = socket.socket(fileno=os.dup(s.fileno())); here(copy); copy.close()
def in_child(act):
    child = os.fork()
    if child == 0: act(); os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
def by_child(s): in_child(lambda: here(s))
def receives():
    while received := socket.recv_fds(far, 1, 1)[1]: here(socket.socket(fileno=received[0])); far.send(b"x")
def by_receiver(s): socket.send_fds(near, [b"x"], [s.fileno()]); near.recv(1)  # it was there before the socket
near, far = socket.socketpair()
if os.fork() == 0: near.close(); receives(); os._exit(0)
far.close()
def nobody(s): pass
for how in (nobody, here, by_copy, by_receiver, by_child):
    for before in (True, False):
        s = socket.socket(); s.bind(("127.0.0.1", 0))
        if before: how(s)
        s.listen()
        if not before: how(s)
        a = socket.socket()
        if how in (here, by_copy): how(a)
        a.connect(s.getsockname()); b, _ = s.accept()
        meet()
        for end in (a, b):
            if end is a and how not in (here, by_copy): continue
            if how is nobody: assert time_of(end) == bytes(16) and not no_delay(end)
            else: assert time_of(end) == TIME and no_delay(end) and late(end), how
print("kept"); near.close(); os.wait()
"""
        )
        self.assertEqual(output, "kept\n")

    def test_what_was_written_before_exit_arrives(self):
        for how in ("sys.exit(0)", "os._exit(0)", "pass"):
            server, port = self.start_python(
                "import socket, sys\n"
                'l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1]); c, _ = l.accept()\n'
                'got = b"".join(iter(lambda: c.recv(1 << 16), b"")); print(len(got))',
                listens=True,
            )
            text = f"""
import os, socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.sendall(bytes(3000000)); s.detach()
{how}
"""
            self.finish(self.start_python(text, port))
            self.assertEqual(self.finish(server)[0], "3000000\n", how)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    unittest.main(verbosity=2)
