#!/usr/bin/env python3
"""Urgent bytes (MSG_OOB) under the switch: each program prints what it prints over TCP."""

import os
import unittest

from support import BOTH, SwitchTest

DIRECT = os.environ.get("ESDP_SWITCH_MODE") == "direct"
ENDS = """
import array, ctypes, errno, fcntl, os, select, signal, socket, struct, sys, termios, threading, time
OOB, DONTWAIT, SIOCATMARK = socket.MSG_OOB, socket.MSG_DONTWAIT, 0x8905
l = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(l.getsockname()); b, _ = l.accept()
def meet():
    a.sendall(b"hello"); assert b.recv(5) == b"hello"
    b.sendall(b"there"); assert a.recv(5) == b"there"
def asked(s, what): return struct.unpack("i", fcntl.ioctl(s.fileno(), what, bytes(4)))[0]
def at_mark(s): return asked(s, SIOCATMARK)
def shows(s, wait=0):
    p = select.poll(); p.register(s, select.POLLPRI); return bool(p.poll(wait))
def tried(act):
    try: return act()
    except OSError as e: return errno.errorcode[e.errno]
def urgent(s, flags=0): return tried(lambda: s.recv(1, OOB | flags))
def now(s, size=100, flags=0): return tried(lambda: s.recv(size, DONTWAIT | flags))
def settle(): time.sleep(0.3)
"""


class UrgentTest(SwitchTest):
    def outputs(self, text, **keywords):
        """(plain, switched)"""
        plain = self.finish(self.start_python(ENDS + text, switched=False, **keywords))[0]
        switched = self.finish(self.start_python(ENDS + text, **keywords))[0]
        self.assertEqual(len([each for each in self.moved() if each.sdp > 0]), 2, self.log_text())
        self.assertEqual(sum(each.tcp for each in self.moved()), 0)
        self.log.unlink()
        return plain, switched

    def check(self, text):
        plain, switched = self.outputs(text)
        self.assertEqual(switched, plain)
        self.assertNotEqual(plain, "")

    def test_a_byte_alone(self):
        self.check(
            """
meet(); print(urgent(b), at_mark(b), shows(b))
print(a.send(b"!", OOB)); print(shows(b, 5000), shows(b), at_mark(b))
print(urgent(b, socket.MSG_PEEK), urgent(b), urgent(b), shows(b), at_mark(b))
print(now(b), at_mark(b)); a.sendall(b"next"); settle(); print(now(b), at_mark(b), urgent(b))
print(a.send(b"xyz!", OOB)); print(shows(b, 5000)); settle(); print(urgent(b), now(b), now(b))
print(b.send(b"?", OOB)); print(shows(a, 5000), urgent(a)); print(a.send(b"", OOB))
"""
        )

    def test_a_byte_behind_others_comes_ahead_of_them_and_reads_end_before_it(self):
        self.check(
            """
meet(); a.sendall(b"abc"); a.send(b"!", OOB); a.sendall(b"de"); print(shows(b, 5000)); settle()
print(urgent(b), at_mark(b), now(b, 1), now(b, 100, socket.MSG_PEEK), now(b), at_mark(b), now(b), at_mark(b), now(b))
a.sendall(b"abc"); a.send(b"!", OOB); a.sendall(b"de"); settle()
print(now(b), at_mark(b), urgent(b), now(b, 1), urgent(b), now(b))
a.sendall(b"abc"); a.send(b"!", OOB); a.sendall(b"de"); settle()
print(b.recv(100, socket.MSG_WAITALL), b.recv(2, socket.MSG_WAITALL), urgent(b))
buffers = [bytearray(2), bytearray(9)]
a.sendall(b"abc"); a.send(b"!", OOB); a.sendall(b"de"); settle()
got = b.recvmsg_into(buffers)[0]; print(got, b"".join(buffers)[:got]); message = b.recvmsg(9, 0, OOB); print(message[0], message[2] & OOB == OOB)
"""
        )

    def test_of_two_the_last_is_the_urgent_one(self):
        self.check(
            """
meet(); a.sendall(b"ab"); a.send(b"1", OOB); a.sendall(b"cd"); a.send(b"2", OOB); a.sendall(b"ef"); settle()
print(urgent(b), urgent(b), now(b), at_mark(b), now(b), now(b))
"""
        )

    def test_in_line_a_read_begins_with_it(self):
        for when in ("before", "after"):
            self.check(
                f"""
inline = lambda: b.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
if "{when}" == "before": inline()
meet()
if "{when}" == "after": inline()
print(b.getsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE), a.getsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE))
a.sendall(b"ab"); a.send(b"!", OOB); a.sendall(b"cd"); print(shows(b, 5000)); settle()
print(urgent(b), at_mark(b), now(b), at_mark(b), now(b), at_mark(b), shows(b))
a.send(b"?", OOB); print(shows(b, 5000), at_mark(b), now(b), at_mark(b), shows(b))
"""
            )

    def test_sockatmark_finds_the_place(self):
        self.check(
            """
libc = ctypes.CDLL(None); meet(); print(libc.sockatmark(b.fileno()), libc.sockatmark(l.fileno()))
a.sendall(b"ab"); a.send(b"!", OOB); print(shows(b, 5000)); settle()
print(libc.sockatmark(b.fileno()), now(b), libc.sockatmark(b.fileno()))
"""
        )

    # The stream pair under the number is readable as well where it shows an urgent byte.
    def test_select_poll_and_epoll_show_it(self):
        self.check(
            """
meet(); PRI = select.EPOLLPRI
level, edge = select.epoll(), select.epoll(); level.register(b, PRI); edge.register(b, PRI | select.EPOLLET)
def seen(e, wait=0): return bool(dict(e.poll(wait)).get(b.fileno(), 0) & PRI)
def excepts(wait=0): return bool(select.select([], [], [b], wait)[2])
print(seen(level), seen(edge), excepts(), shows(b))
for _ in range(3):
    a.send(b"!", OOB); print(seen(level, 5), seen(level), seen(edge, 5), seen(edge), excepts(), shows(b))
    print(urgent(b), seen(level), seen(edge), excepts(), shows(b)); now(b)
a.sendall(b"ab"); a.send(b"!", OOB); print(excepts(5), seen(level, 5)); settle()
print(now(b), excepts()); a.sendall(b"c"); settle(); print(now(b), excepts(), seen(level))
"""
        )

    def test_a_signal_tells_the_owner(self):
        own = "fcntl.fcntl(b.fileno(), fcntl.F_SETOWN, os.getpid())"
        for before, after in ((own, "pass"), ("pass", own), ("pass", own.replace("fcntl.fcntl", "fcntl.ioctl").replace("fcntl.F_SETOWN, os.getpid()", "0x8901, struct.pack('i', os.getpid())"))):
            self.check(
                f"""
got = []
signal.signal(signal.SIGURG, lambda *_: got.append((urgent(b))))
{before}
meet()
{after}
def later():
    settle(); a.send(b"!", OOB); settle(); a.sendall(b"next")
t = threading.Thread(target=later); t.start()
print(b.recv(10), got); t.join()
a.send(b"?", OOB); settle(); print(got)
"""
            )

    def test_a_handler_reads_it_while_it_interrupts_a_read(self):
        self.check(
            """
meet(); libc = ctypes.CDLL(None); got = []
def handle(_):
    byte = ctypes.create_string_buffer(1); got.append((libc.recv(b.fileno(), byte, 1, OOB), byte.raw))
handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(handle); libc.signal(signal.SIGURG, handler)  # which restarts
fcntl.fcntl(b.fileno(), fcntl.F_SETOWN, os.getpid())
def later(): settle(); a.send(b"!", OOB); settle(); a.sendall(b"next")
t = threading.Thread(target=later); t.start()
data = ctypes.create_string_buffer(9); print(libc.recv(b.fileno(), data, 9, 0), data.value, got)
"""
        )

    def test_one_before_the_end(self):
        self.check(
            """
meet(); a.sendall(b"ab"); a.send(b"!", OOB); a.close(); settle()
print(shows(b), urgent(b), shows(b), now(b), at_mark(b), now(b), urgent(b))
"""
        )

    def test_a_read_that_waits_goes_past_it(self):
        self.check(
            """
meet(); got = []
t = threading.Thread(target=lambda: got.append(b.recv(10))); t.start()
settle(); a.send(b"!", OOB); settle(); a.sendall(b"xy"); t.join(); print(got, urgent(b), shows(b))
"""
        )

    def test_what_is_before_it_may_be_large(self):
        self.check(
            """
meet(); total = 3000000
def send(last): a.sendall(bytes(total)); a.send(last, OOB); a.sendall(b"next")
for last in (b"!", b"?"):
    t = threading.Thread(target=send, args=(last,)); t.start(); got = 0
    while got < total: got += len(b.recv(65536))
    t.join(); print(got == total, shows(b, 5000), at_mark(b), urgent(b), b.recv(4, socket.MSG_WAITALL), shows(b))
"""
        )

    # Where a request of SDP could come, and none does.
    def test_a_plain_peer_stays_tcp(self):
        server = "import select, socket\n" + """
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1], flush=True); c, _ = l.accept()
select.select([], [], [c], 5); print(c.recv(1, socket.MSG_OOB), c.recv(9)); c.send(b"?", socket.MSG_OOB)
try: c.recv(1)
except ConnectionResetError: pass  # the byte that it has read apart is unread in the stream
"""
        client = "import select, socket, sys, time\n" + """
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.send(b"first"); s.send(b"!", socket.MSG_OOB)
select.select([], [], [s], 5); print(s.recv(1, socket.MSG_OOB))
"""
        for switched in ((True, False), (False, True)):
            process, port = self.start_python(server, listens=True, switched=switched[0])
            self.assertEqual(self.finish(self.start_python(client, port, switched=switched[1]))[0], "b'?'\n")
            self.assertEqual(self.finish(process)[0], "b'!' b'first'\n")
            self.assertEqual(self.moved(), [])

    # A client that has asked in vain goes on by TCP, over which its urgent bytes go.
    def test_a_client_that_was_not_answered_sends_them_by_tcp(self):
        server = "import socket\n" + """
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1], flush=True)
c, _ = l.accept(); c.close(); c, _ = l.accept(); c.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
c.sendall(b"ab"); c.send(b"?", socket.MSG_OOB); got = b""
while len(got) < 4: got += c.recv(9)
print(got); c.close()
"""
        client = "import select, socket, sys, time\n" + """
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.sendall(b"xyz"); s.send(b"!", socket.MSG_OOB)
select.select([], [], [s], 5); print(s.recv(1, socket.MSG_OOB), s.recv(9), s.recv(9))
"""
        process, port = self.start_python(server, listens=True, switched=False)
        output = self.finish(self.start_python(client, port, rules="use try client * *:*"))[0]
        self.assertEqual(output, "b'?' b'ab' b''\n")
        self.assertEqual(self.finish(process)[0], "b'xyz!'\n")

    def test_a_fork_goes_on_with_them(self):
        self.check(
            """
meet(); a.sendall(b"ab"); a.send(b"!", OOB); a.sendall(b"cd"); shows(b, 5000); settle()
pid = os.fork()
if pid == 0: os._exit(0)
os.waitpid(pid, 0); print(b.recv(9)); settle(); print(at_mark(b), urgent(b), b.recv(9))
a.sendall(b"ab"); a.send(b"?", OOB); a.sendall(b"cd"); print(shows(b, 5000)); settle(); print(urgent(b), now(b), now(b))
b.send(b"#", OOB); print(shows(a, 5000), urgent(a))
"""
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
