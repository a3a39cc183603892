#!/usr/bin/env python3
"""Nothing is disturbed where no rule matches, and what is plain stays as it is where one does."""

import os
import subprocess
import sys
import unittest

from support import BOTH, SHIM, SwitchTest

LOOK = """
import os, sys
def open_numbers(): return sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1]
maps = open("/proc/self/maps").read()
print(open_numbers(), len(os.listdir("/proc/self/task")), "switch-engine" in maps, sorted(os.environ) == sorted(sys.argv[1:]))
"""
PLAIN = """
import errno, os, select, socket, sys
for make in (lambda: socket.socketpair(), lambda: os.pipe()):
    a, b = make(); print(type(a).__name__)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.connect(u.getsockname()); u.send(b"udp"); print(u.recv(9))
l = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(l.getsockname()); a, _ = l.accept()
c.sendall(b"tcp"); print(a.recv(9)); a.close(); print(c.recv(9))
for act in (lambda: os.close(999), lambda: os.read(999, 1), lambda: os.dup2(999, 5), lambda: os.write(-1, b""),
            lambda: socket.socket().recv(1), lambda: socket.socket().getpeername(), lambda: socket.socket().send(b"x")):
    try: act(); print("taken")
    except OSError as e: print(errno.errorcode[e.errno])
print(sorted(int(n) for n in os.listdir("/proc/self/fd"))[-1] < 30)
sys.exit(7)
"""
NO_MATCH = (
    "",
    "use tcp server * *:*;use tcp client * *:*",
    "use tcp client * *:*;use sdp client * *:*",
    "use sdp server another *:*",
)


class UndisturbedTest(SwitchTest):
    def test_a_program_that_no_rule_matches_has_nothing_of_ours_but_the_small_library(self):
        for rules in NO_MATCH:
            environment = self.environment(rules)
            output, errors = self.run_program(sys.executable, "-c", LOOK, *environment, env=environment)
            plain = self.run_program(sys.executable, "-c", LOOK, *self.plain(), switched=False)[0]
            self.assertEqual((output, errors), (plain, ""))
            self.assertIn(" 1 False True", output)
            self.assertFalse([line for line in self.log_text().splitlines() if "rule file" not in line])

    def test_output_errno_and_exit_code_are_those_of_a_plain_run(self):
        plain = self.run_program(sys.executable, "-c", PLAIN, code=7, switched=False)
        for rules in (*NO_MATCH, "use both server * *:1;use both client * *:1"):
            self.assertEqual(self.run_program(sys.executable, "-c", PLAIN, code=7, rules=rules), plain)

    # Descriptors and threads come with the first connection that is switched.
    def test_a_program_that_is_awake_has_no_thread_and_no_descriptor_before(self):
        output, _ = self.run_program(sys.executable, "-c", LOOK, *self.environment())
        plain, _ = self.run_program(sys.executable, "-c", LOOK, *self.plain(), switched=False)
        self.assertEqual(output.split("]")[0], plain.split("]")[0])
        self.assertIn("] 1 True", output)

    def test_a_rule_file_that_cannot_be_read_leaves_all_on_tcp(self):
        huge, fifo = self.folder / "huge", self.folder / "fifo"
        with open(huge, "w", encoding="ascii") as file:
            file.write(BOTH.replace(";", "\n"))
            file.truncate(1 << 30)
        os.mkfifo(fifo)
        for path in (self.folder / "missing", self.folder, huge, fifo):
            environment = self.environment("", ESDP_SWITCH_CONFIG=str(path))
            output, errors = self.run_program(sys.executable, "-c", LOOK, *environment, env=environment)
            self.assertIn(" 1 False True", output)
            self.assertEqual(errors, "")
            self.assertIn(f"the rule file {path} cannot be read", self.log_text())

    def test_errors_of_rules_go_to_the_log_alone_and_the_others_count(self):
        environment = self.environment("use nothing;" + BOTH)
        output, errors = self.run_program(sys.executable, "-c", LOOK, *environment, env=environment)
        self.assertIn(" 1 True True", output)
        self.assertEqual(errors, "")
        self.assertIn("ESDP_SWITCH_RULES, line 1: use is followed by sdp, tcp, both or try", self.log_text())

    def test_it_can_be_turned_off(self):
        environment = self.environment(BOTH, ESDP_SWITCH_OFF="1")
        self.assertIn(" 1 False True", self.run_program(sys.executable, "-c", LOOK, *environment, env=environment)[0])

    def test_without_a_log_nothing_is_said(self):
        environment = self.environment("wrong;" + BOTH, ESDP_SWITCH_CONFIG="/nowhere")
        del environment["ESDP_SWITCH_LOG"]
        self.assertEqual(self.run_program(sys.executable, "-c", PLAIN, code=7, env=environment)[1], "")

    def test_a_log_that_is_a_link_is_not_written(self):
        victim = self.folder / "victim"
        victim.write_text("mine")
        self.log.symlink_to(victim)
        self.run_program(sys.executable, "-c", "pass", rules="wrong")
        self.assertEqual(victim.read_text(), "mine")

    def test_the_library_needs_libc_alone_and_shows_what_it_interposes_alone(self):
        needed = subprocess.run(["readelf", "-d", SHIM], capture_output=True, text=True, check=True).stdout
        found = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "NEEDED" in line]
        self.assertTrue(set(found) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, found)
        shown = subprocess.run(["nm", "-D", "--defined-only", SHIM], capture_output=True, text=True, check=True).stdout
        libc = "/lib/x86_64-linux-gnu/libc.so.6"
        known = subprocess.run(["nm", "-D", "--defined-only", libc], capture_output=True, text=True, check=True).stdout
        names = {line.split()[-1].split("@")[0] for line in known.splitlines()}
        ours = {line.split()[-1] for line in shown.splitlines() if line.split()[-2].isupper()}
        self.assertEqual(ours - names - {"_edata", "_end", "__bss_start"}, set())

    def test_descriptors_of_ours_are_not_closed_by_the_program(self):
        text = """
import ctypes, os, socket
l = socket.create_server(("127.0.0.1", 0)); a = socket.create_connection(l.getsockname()); b, _ = l.accept()
a.sendall(b"x"); assert b.recv(1) == b"x"
keep = {l.fileno(), a.fileno(), b.fileno()}
os.closerange(b.fileno() + 1, 65536)
for n in range(b.fileno() + 1, 65536):
    try: os.close(n)
    except OSError: pass
ctypes.CDLL(None).closefrom(b.fileno() + 1)
a.sendall(b"still"); assert b.recv(5) == b"still"
print("there")
"""
        self.assertEqual(self.run_program(sys.executable, "-c", text)[0], "there\n")

    def test_calls_on_plain_descriptors_cost_eight_instructions_at_most(self):
        program, source, out = self.folder / "calls", self.folder / "calls.c", self.folder / "callgrind"
        source.write_text(CALLS)
        subprocess.run(["cc", "-O2", "-o", program, source], check=True)

        def count(call, rounds, environment):
            command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, call, str(rounds)]
            subprocess.run(command, env=environment, check=True, capture_output=True)
            lines = out.read_text().splitlines()
            return int(next(line for line in lines if line.startswith(("totals:", "summary:"))).split()[1])

        def each(call, environment):
            return (count(call, 30000, environment) - count(call, 10000, environment)) / 20000

        # By no rule, and with the engine there.
        for rules in ("", BOTH):
            for call in ("read", "write", "send", "poll", "epoll"):
                with self.subTest(call=call, rules=rules):
                    more = each(call, self.environment(rules)) - each(call, self.plain())
                    self.assertLessEqual(more, 8)


CALLS = """
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char** words) {
  char byte = 0;
  int pair[2], set = epoll_create1(0), i, n = atoi(words[2]);
  struct pollfd asked[8];
  struct epoll_event event;
  socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair);
  for (i = 0; i < 8; ++i) asked[i].fd = pair[0], asked[i].events = POLLIN;
  for (i = 0; i < n; ++i) {
    if (!strcmp(words[1], "read")) (void)!read(pair[0], &byte, 1);
    if (!strcmp(words[1], "write")) (void)!write(pair[1], &byte, 0);
    if (!strcmp(words[1], "send")) (void)!send(pair[1], &byte, 0, 0);
    if (!strcmp(words[1], "poll")) (void)!poll(asked, 8, 0);
    if (!strcmp(words[1], "epoll")) (void)!epoll_wait(set, &event, 1, 0);
  }
  return 0;
}
"""

if __name__ == "__main__":
    unittest.main(verbosity=2)
