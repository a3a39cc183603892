#!/usr/bin/env python3
"""What a program may not do, or has no more of: calls that a sandbox forbids, and descriptors."""

import resource
import subprocess
import sys
import unittest

from support import RUNFILES, SwitchTest

TOOL = RUNFILES / "tools/esdp_switch/esdp_switch"
BEGIN = """
import ctypes, errno, os, resource, socket, struct, sys
def is_pair(s): return any(line.split()[6] == str(os.stat(s.fileno()).st_ino) for line in open("/proc/net/unix").readlines()[1:])
def forbid(*calls):
    # Each answers EPERM, by a filter in the words of the kernel's BPF.
    code = [struct.pack("HBBI", 0x20, 0, 0, 0)]
    for i, call in enumerate(calls): code.append(struct.pack("HBBI", 0x15, len(calls) - i, 0, call))
    code += [struct.pack("HBBI", 6, 0, 0, 0x7FFF0000), struct.pack("HBBI", 6, 0, 0, 0x00050000 | errno.EPERM)]
    text = ctypes.create_string_buffer(b"".join(code))
    class Program(ctypes.Structure): _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_void_p)]
    program = Program(len(code), ctypes.addressof(text)); libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
"""
ECHO = """
import socket
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1], flush=True)
while True:
    c, _ = l.accept()
    while d := c.recv(100): c.sendall(d)
    c.close()
"""
CLIENT = """
forbid(*map(int, sys.argv[2:]))
for i in range(2):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.sendall(b"hello"); print(s.recv(100), is_pair(s)); s.close()
"""
SERVER = """
forbid(*map(int, sys.argv[1:]))
l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1], flush=True)
for i in range(3):
    c, _ = l.accept()
    try:
        while d := c.recv(100): c.sendall(d)
    except ConnectionResetError: pass
    print(is_pair(c)); c.close()
"""
# Of x86-64.
FORBIDDEN = {"socketpair": (53,), "clone": (56, 435), "epoll_create1": (291,), "eventfd2": (290,)}
MANY = """
before = resource.getrlimit(resource.RLIMIT_NOFILE)
print(before[0], os.sysconf("SC_OPEN_MAX"), before[1] == int(sys.argv[1]), resource.prlimit(0, resource.RLIMIT_NOFILE) == before)
l = socket.create_server(("127.0.0.1", 0)); held = []
while len(held) < 200:
    a = socket.create_connection(l.getsockname()); a.sendall(b"x"); b, _ = l.accept(); assert b.recv(1) == b"x"; held += [a, b]
print(max(s.fileno() for s in held) < 256, all(map(is_pair, held)))
rest = []
try:
    while True: rest.append(os.open("/dev/null", os.O_RDONLY))
except OSError as e: print(errno.errorcode[e.errno], max(rest))
for make in (socket.socket, os.pipe, lambda: os.dup(0), socket.socketpair):
    try: make(); print("made")
    except OSError as e: print(errno.errorcode[e.errno])
# One that waits to be accepted is there when a number is free again.
os.close(rest.pop()); c = socket.create_connection(l.getsockname())
try: l.accept(); print("accepted")
except OSError as e: print(errno.errorcode[e.errno])
os.close(rest.pop()); d, _ = l.accept(); c.sendall(b"at last"); print(d.recv(100)); c.close(); d.close()
resource.setrlimit(resource.RLIMIT_NOFILE, (300, before[1])); print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
try: resource.setrlimit(resource.RLIMIT_NOFILE, (before[1] + 2, before[1] + 1))
except (OSError, ValueError): print("refused")
print([os.open("/dev/null", os.O_RDONLY) for _ in range(46)][-1])
try: os.open("/dev/null", os.O_RDONLY)
except OSError as e: print(errno.errorcode[e.errno])
print(all(s.send(b"still") == 5 for s in held))
"""
FEW = """
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); rest = []
try:
    while True: rest.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
for _ in range(int(sys.argv[2])): os.close(rest.pop())
try:
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.sendall(b"hello"); print(s.recv(100))
except OSError as e: print(errno.errorcode[e.errno])
"""
SHOW = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"


class LimitsTest(SwitchTest):
    def test_a_client_in_a_sandbox_stays_tcp_and_the_log_says_so(self):
        _, port = self.start_python(ECHO, listens=True)
        for name, calls in FORBIDDEN.items():
            with self.subTest(name):
                output = self.finish(self.start_python(BEGIN + CLIENT, port, *map(str, calls)))
                self.assertEqual(output, ("b'hello' False\n" * 2, ""), self.log_text())
                self.assertIn("stays TCP, reason 8", self.log_text())
                self.log.unlink()

    # Of the first connection it has read the request for SDP: the client comes once more.
    def test_a_server_in_a_sandbox_is_reached_by_tcp(self):
        for name, calls in FORBIDDEN.items():
            with self.subTest(name):
                server, port = self.start_python(BEGIN + SERVER, *map(str, calls), listens=True)
                output = self.finish(self.start_python(BEGIN + CLIENT, port, "9999"))
                self.assertEqual([line.split()[0] for line in output[0].splitlines()], ["b'hello'"] * 2)
                self.assertEqual(self.finish(server), ("False\n" * 3, ""))

    # To go by SDP takes more and more of them: of the program's end, of a thread, of a Context.
    def test_tcp_goes_on_at_whatever_step_descriptors_run_out(self):
        _, port = self.start_python(ECHO, listens=True)
        clients = [self.start_python(BEGIN + FEW, port, str(left)) for left in range(20)]
        self.assertEqual([self.finish(client) for client in clients], [("EMFILE\n", ""), *[("b'hello'\n", "")] * 19])
        self.assertIn("stays TCP, reason 9", self.log_text())

    def with_limit(self, *command, limit=256, **more):
        hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 20000)

        def lower():
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))

        words = [str(word) if word != "HARD" else str(hard) for word in command]
        return self.finish(self.start(*words, switched=False, preexec_fn=lower, **more))

    # Each connection takes three descriptors more, which lie above what the program may have.
    def test_a_program_has_as_many_connections_as_its_limit_allows(self):
        run = [TOOL, "run", "--library", self.shim]
        output, errors = self.with_limit(*run, sys.executable, "-c", BEGIN + MANY, "HARD")
        lines = ["256 256 True True", "True True", "EMFILE 255", *["EMFILE"] * 4, "EMFILE", "b'at last'", "300", "refused", "299", "EMFILE", "True"]
        self.assertEqual(output.splitlines(), lines, errors + self.log_text())

    def test_a_program_that_no_rule_matches_has_the_limit_that_it_was_given(self):
        run = [TOOL, "run", "--library", self.shim, "--rule", "use both server another *:*"]
        self.assertEqual(self.with_limit(*run, sys.executable, "-c", SHOW), ("256\n", ""))
        count = "import subprocess; print(subprocess.check_output('ulimit -n', shell=True, text=True), end='')"
        self.assertEqual(self.with_limit(*run, sys.executable, "-c", count), ("256\n", ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
