#!/usr/bin/env python3
"""Connections and processes: fork, exec, passing on, signals."""

import sys
import unittest

from support import SwitchTest

ENDS = """
import array, os, signal, socket, subprocess, sys, time
l = socket.create_server(("127.0.0.1", 0))
def is_pair(s): return any(line.split()[6] == str(os.stat(s.fileno()).st_ino) for line in open("/proc/net/unix").readlines()[1:])
def connect():
    a = socket.create_connection(l.getsockname()); b, _ = l.accept(); return a, b
"""


class ProcessesTest(SwitchTest):
    def run_text(self, text, **keywords):
        return self.finish(self.start_python(ENDS + text, **keywords))[0]

    def test_the_child_of_an_accept_decides_and_the_parents_close_is_none(self):
        output = self.run_text(
            """
def serve():
    while True:
        c, _ = l.accept()
        if os.fork() == 0:
            l.close()
            c.sendall(b"[" + c.recv(100) + b"]"); assert is_pair(c); c.close(); os._exit(0)
        c.close()
server = os.fork()
if server == 0: serve()
for i in range(5):
    s = socket.create_connection(l.getsockname()); s.sendall(b"%d" % i); assert s.recv(10) == b"[%d]" % i and s.recv(1) == b""
    assert is_pair(s)
os.kill(server, signal.SIGTERM)
print("each")
"""
        )
        self.assertEqual(output, "each\n")
        self.assertEqual(len(self.moved("accepted")), 5)

    def test_a_process_forks_at_any_moment_of_its_first_connection(self):
        # Each time a process that has had none: what its child inherits is half made in places.
        output = self.run_text(
            """
import threading
def echo(c):
    while d := c.recv(100): c.sendall(d)
    c.close()
def serve():
    while True:
        c, _ = l.accept(); threading.Thread(target=echo, args=(c,), daemon=True).start()
server = os.fork()
if server == 0: serve()
def first_connection():
    s = socket.create_connection(l.getsockname()); s.sendall(b"x"); return s
def in_child(body):
    pid = os.fork()
    if pid == 0:
        signal.alarm(10); body(); os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
def of_its_own():
    s = first_connection(); assert s.recv(1) == b"x"; s.close()
def program():
    s, until = first_connection(), time.perf_counter() + i * 2e-5
    while time.perf_counter() < until: pass
    in_child(of_its_own)
    assert s.recv(1) == b"x"; s.close()
try:
    for i in range(150): in_child(program)
    print("each")
finally: os.kill(server, signal.SIGKILL)
"""
        )
        self.assertEqual(output, "each\n")

    def test_workers_that_share_a_listener_take_sdp_each(self):
        output = self.run_text(
            """
workers = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        while True:
            c, _ = l.accept()
            while d := c.recv(100): c.sendall(b"%d" % os.getpid())
            c.close()
    workers.append(pid)
seen, held = set(), []
for _ in range(40):
    s = socket.create_connection(l.getsockname()); s.sendall(b"?"); seen.add(int(s.recv(20))); assert is_pair(s)
    s.close()
for pid in workers: os.kill(pid, signal.SIGKILL)
assert seen <= set(workers)
print("all")
"""
        )
        self.assertEqual(output, "all\n")

    def test_a_child_goes_on_with_its_parents_open_connection(self):
        output = self.run_text(
            """
a, b = connect(); a.sendall(b"x"); assert b.recv(1) == b"x"
before = a.getpeername(), a.getsockname()
pid = os.fork()
if pid == 0:
    assert (a.getpeername(), a.getsockname()) == before
    assert a.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
    a.sendall(b"of the child"); assert a.recv(10) == b"answer"
    other = socket.create_connection(l.getsockname()); other.sendall(b"a new one"); other.close()
    os._exit(0)
assert b.recv(20) == b"of the child"; b.sendall(b"answer")
c, _ = l.accept(); assert c.recv(20) == b"a new one" and is_pair(c)
assert os.waitpid(pid, 0)[1] == 0
a.sendall(b"of the parent"); assert b.recv(20) == b"of the parent"
print("both")
"""
        )
        self.assertEqual(output, "both\n")

    def test_a_close_ends_the_stream_when_the_last_copy_is_closed(self):
        output = self.run_text(
            """
a, b = connect(); a.sendall(b"x"); assert b.recv(1) == b"x"
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.read(r, 1); a.sendall(b"later"); os._exit(0)
a.close()
b.settimeout(0.3)
try: b.recv(1); print("bytes")
except TimeoutError: pass
os.write(w, b"x"); b.settimeout(10)
assert b.recv(10) == b"later" and b.recv(10) == b""
print("last")
"""
        )
        self.assertEqual(output, "last\n")

    def test_a_program_that_is_executed_by_a_child_has_the_connection_as_its_input_and_output(self):
        output = self.run_text(
            """
a, b = connect(); a.sendall(b"x"); assert b.recv(1) == b"x"
child = subprocess.Popen(["cat"], stdin=b, stdout=b); b.close()
a.sendall(b"through cat"); a.shutdown(socket.SHUT_WR)
got = b""
while d := a.recv(100): got += d
print(got.decode(), child.wait())
"""
        )
        self.assertEqual(output, "through cat 0\n")

    # Nobody has read yet: the program that is executed finds the request, and is under the switch too.
    def test_a_program_that_is_executed_before_the_first_byte_decides_by_itself(self):
        output = self.run_text(
            """
a = socket.create_connection(l.getsockname()); b, _ = l.accept()
child = subprocess.Popen(["cat"], stdin=b, stdout=b); b.close()
a.sendall(b"through cat"); a.shutdown(socket.SHUT_WR)
got = b""
while d := a.recv(100): got += d
print(got.decode(), child.wait())
"""
        )
        self.assertEqual(output, "through cat 0\n")

    def test_a_program_that_is_started_may_speak_first_and_its_server_goes_on(self):
        output = self.run_text(
            """
def by_system(c): os.set_inheritable(c.fileno(), True); os.system(f"echo hello >&{c.fileno()}")
def by_spawn(c):
    to = [(os.POSIX_SPAWN_DUP2, c.fileno(), 1)]
    os.waitpid(os.posix_spawn("/bin/echo", ["echo", "hello"], os.environ, file_actions=to), 0)
for start in (by_system, by_spawn):
    server = os.fork()
    if server == 0:
        c, _ = l.accept(); start(c); c.sendall(b"more"); assert c.recv(9) == b"quit"; c.sendall(b"bye"); c.close(); os._exit(0)
    s = socket.create_connection(l.getsockname()); got = b""
    while b"more" not in got: got += s.recv(10)
    assert is_pair(s); s.sendall(b"quit")
    while d := s.recv(9): got += d
    print(got, os.waitpid(server, 0)[1])
""",
            rules="use both server * *:* wait=2000;use both client * *:*",  # who speaks first waits until it is asked
        )
        self.assertEqual(output, "b'hello\\nmorebye' 0\n" * 2)

    def test_a_connection_that_is_passed_on_works_in_a_program_without_the_switch(self):
        output = self.run_text(
            """
text = "import array, socket, sys\\nu = socket.socket(fileno=0); d, c, *_ = u.recvmsg(1, 100); " \\
    "s = socket.socket(fileno=int.from_bytes(c[0][2], 'little')); s.sendall(b'[' + s.recv(100) + b']')"
plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
a, b = connect(); a.sendall(b"x"); assert b.recv(1) == b"x"
mine, its = socket.socketpair()
child = subprocess.Popen([sys.executable, "-c", text], stdin=its, env=plain)
socket.send_fds(mine, [b"x"], [b.fileno()]); b.close()
a.sendall(b"passed"); print(a.recv(100).decode(), child.wait())
"""
        )
        self.assertEqual(output, "[passed] 0\n")

    def test_a_connection_that_is_passed_on_has_its_names_in_a_program_under_the_switch(self):
        output = self.run_text(
            '''
text = """
import socket, sys
n = int(sys.argv[1]) or socket.recv_fds(socket.socket(fileno=0), 1, 1)[1][0]
s = socket.socket(fileno=n); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print(s.family.name, s.getsockname(), s.getpeername(), s.recv(4, socket.MSG_WAITALL), flush=True); s.sendall(b'seen')
"""
for end in (0, 1):
    for passes in (False, True):
        ends = connect(); ends[0].sendall(b"x"); assert ends[1].recv(1) == b"x"
        its, other = ends[end], ends[1 - end]; os.set_inheritable(its.fileno(), True)
        mine, theirs = socket.socketpair()
        run = [sys.executable, "-c", text, str(0 if passes else its.fileno())]
        child = subprocess.Popen(run, stdin=theirs, close_fds=passes, stdout=subprocess.PIPE)
        if passes: socket.send_fds(mine, [b"x"], [its.fileno()])
        other.sendall(b"data")
        said = child.communicate()[0].decode().strip()
        print(said == f"AF_INET {its.getsockname()} {its.getpeername()} b'data'" or said, other.recv(4, socket.MSG_WAITALL))
        its.sendall(b"on"); print(other.recv(2, socket.MSG_WAITALL))
# To itself: it is one more number of the connection.
a, b = connect(); a.sendall(b"x"); b.recv(1); s, t = socket.socketpair(); socket.send_fds(s, [b"x"], [a.fileno()])
c = socket.socket(fileno=socket.recv_fds(t, 1, 1)[1][0]); print(c.family.name, c.getpeername() == b.getsockname()); a.close()
c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, (1).to_bytes(8, "little")); c.close()
try: print(b.recv(1))
except ConnectionResetError: print("reset")
'''
        )
        self.assertEqual(output, "True b'seen'\nb'on'\n" * 4 + "AF_INET True\nreset\n")

    def test_processes_are_spawned_beside_traffic(self):
        output = self.run_text(
            """
import threading
a, b = connect()
def send():
    for _ in range(2000): a.sendall(bytes(1000))
    a.shutdown(socket.SHUT_WR)
t = threading.Thread(target=send); t.start()
def spawn():
    for _ in range(20): assert subprocess.call(["true"]) == 0
w = threading.Thread(target=spawn); w.start()
got = 0
while d := b.recv(65536): got += len(d)
t.join(); w.join(); print(got)
"""
        )
        self.assertEqual(output, "2000000\n")

    def test_a_process_that_is_killed_leaves_a_reset_and_no_file(self):
        output = self.run_text(
            """
a, b = connect(); a.sendall(b"x"); assert b.recv(1) == b"x"
pid = os.fork()
if pid == 0:
    s = socket.create_connection(l.getsockname()); s.sendall(b"x"); time.sleep(1); os.kill(os.getpid(), signal.SIGKILL)
c, _ = l.accept(); assert c.recv(1) == b"x"
try: print(c.recv(1))
except ConnectionResetError: print("reset")
os.waitpid(pid, 0)
a.sendall(b"y"); assert b.recv(1) == b"y"
"""
        )
        self.assertEqual(output, "reset\n")

    def test_a_child_sees_the_end_of_the_connections_of_a_parent_that_is_killed(self):
        output = self.run_text(
            """
r, w = os.pipe()
parent = os.fork()
if parent == 0:
    s = socket.create_connection(l.getsockname()); s.sendall(b"x"); assert s.recv(1) == b"y"
    if os.fork() == 0:
        mine = {int(n) for n in os.listdir("/proc/self/fd")}
        high = {n for n in mine if n > 500}
        try: end = s.recv(1)
        except ConnectionResetError: end = b""
        os.write(w, b"%d %a" % (len(end), len(high) <= 1))  # the name of the port
        os._exit(0)
    time.sleep(60)
c, _ = l.accept(); assert c.recv(1) == b"x"; c.sendall(b"y"); time.sleep(0.3)
os.kill(parent, signal.SIGKILL); os.waitpid(parent, 0)
print(os.read(r, 10).decode())
"""
        )
        self.assertEqual(output, "0 True\n")

    # A fork relays what was direct: the engine makes and closes descriptors beside each of them.
    def test_neither_a_child_nor_the_programs_own_numbers_have_what_the_engine_makes(self):
        output = self.run_text(
            """
def numbers():
    found = [int(n) for n in os.listdir("/proc/self/fd")]
    return [n for n in found if n > 500], [n for n in found if n <= 500]
held, had, low = [], set(), set()
_, before = numbers()
for i in range(50):
    a, b = connect(); a.sendall(b"x"); assert b.recv(1) == b"x"
    held += [a, b]
    pid = os.fork()
    if pid == 0: os._exit(len(numbers()[0]))
    a.sendall(b"y"); assert b.recv(1) == b"y"
    had.add(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    low.add(len(numbers()[1]) - len(held) - len(before))
print(had, low)
"""
        )
        self.assertEqual(output, "{1} {0}\n")  # the name of the port

    # Its peer has not closed when it is gone: what it has moved is known all the same.
    def test_the_end_of_a_program_ends_its_connections_in_the_log_also_behind_a_fork(self):
        output = self.run_text(
            """
pid = os.fork()
if pid == 0:
    for forks in (False, True):
        s = socket.create_connection(l.getsockname()); s.sendall(b"x"); assert s.recv(1) == b"y"; s.sendall(b"again"); held = (s, held) if forks else s
        if forks and os.fork() == 0: s.sendall(b"child"); os._exit(0)
        if forks: os.wait()
    sys.exit(0)
peers = []
for _ in range(2):
    c, _ = l.accept(); assert c.recv(1) == b"x"; c.sendall(b"y"); peers.append(c)
print([b"".join(iter(lambda: c.recv(100), b"")) for c in peers]); os.waitpid(pid, 0)
"""
        )
        self.assertEqual(output, "[b'again', b'againchild']\n")
        self.assertEqual(sorted(each.sdp_sent for each in self.moved("connected")), [6, 11], self.log_text())

    def test_what_a_program_has_written_is_read_also_when_it_is_gone_before_that(self):
        output = self.run_text(
            """
pid = os.fork()
if pid == 0:
    s = socket.create_connection(l.getsockname()); s.sendall(b"x"); assert s.recv(1) == b"y"
    s.sendall(b"again" * 1000); os._exit(0)
c, _ = l.accept(); assert c.recv(1) == b"x"; c.sendall(b"y")
os.waitpid(pid, 0)
# What it sends there is nobody to take; the kernel tells that at the second time, and so may SDP.
try:
    for _ in range(100): c.send(b"late"); time.sleep(0.001)
except OSError: pass
got = b""
try:
    while d := c.recv(100): got += d
except ConnectionResetError: pass  # behind the bytes, where no send was told
print(got == b"again" * 1000)
"""
        )
        self.assertEqual(output, "True\n")

    def test_signals_in_a_transfer_lose_no_byte(self):
        output = self.run_text(
            """
import threading
count = 0
def handler(*_):
    global count; count += 1
signal.signal(signal.SIGALRM, handler); signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
a, b = connect()
def send():
    a.sendall(bytes(range(256)) * 40000); a.shutdown(socket.SHUT_WR)
t = threading.Thread(target=send); t.start()
got = b"".join(iter(lambda: b.recv(65536), b"")); t.join()
signal.setitimer(signal.ITIMER_REAL, 0)
print(got == bytes(range(256)) * 40000, count > 5)
"""
        )
        self.assertEqual(output, "True True\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
