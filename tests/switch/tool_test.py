#!/usr/bin/env python3
"""esdp_switch: runs programs, names rules, shows connections and tells why."""

import os
import subprocess
import sys
import time
import unittest

from support import RUNFILES, SwitchTest

TOOL = RUNFILES / "tools/esdp_switch/esdp_switch"
PAIR = """
import socket, sys
l = socket.create_server(("127.0.0.1", 0)); a = socket.create_connection(l.getsockname()); b, _ = l.accept()
a.sendall(bytes(1000)); got = 0
while got < 1000: got += len(b.recv(1000))
print(l.getsockname()[1]); sys.stdin.read()
"""


class ToolTest(SwitchTest):
    def tool(self, *words, code=0, **environment):
        base = {name: value for name, value in os.environ.items() if not name.startswith("ESDP_SWITCH")}
        result = subprocess.run(
            [TOOL, *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**base, "ESDP_SWITCH_CONFIG": "/dev/null/none", **environment},
        )
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout, result.stderr

    def run_words(self, *more):
        return [TOOL, "run", "--library", self.shim, *more]

    def start_pair(self, *more):
        process = self.start(
            *self.run_words(*more), sys.executable, "-u", "-c", PAIR, switched=False, stdin=subprocess.PIPE
        )
        return process, process.stdout.readline().strip()

    def test_a_program_is_run_with_all_by_both_unless_rules_say_otherwise(self):
        process, port = self.start_pair()
        for _ in range(200):  # counted right behind what the program was given
            rows = [line.split("\t") for line in self.tool("list", process.pid)[0].splitlines()]
            by_side = {row[3]: row for row in rows[1:]}
            if [row[8:10] for row in rows[1:]].count(["0", "1000"]) == 1 and ["1000", "0"] in [row[8:10] for row in rows]:
                break
            time.sleep(0.01)
        self.assertEqual(rows[0][:4], ["PID", "PROGRAM", "NUMBER", "SIDE"])
        self.assertEqual(set(by_side), {"accepted", "connected"})
        self.assertEqual(by_side["accepted"][4], f"127.0.0.1:{port}")
        self.assertEqual(by_side["connected"][5], f"127.0.0.1:{port}")
        self.assertEqual(by_side["connected"][6:12], ["both", "sdp", "1000", "0", "0", "0"])
        self.assertEqual(by_side["accepted"][6:12], ["both", "sdp", "0", "1000", "0", "0"])
        self.assertTrue(by_side["accepted"][12].startswith("13 relayed"))
        self.assertIn("awake; 2 connections", self.tool("why", process.pid)[0])
        self.assertIn(f"{process.pid}\t", self.tool("list")[0])

    def test_it_tells_why_a_connection_stays_tcp(self):
        process, _ = self.start_pair("--rule", "use both client * *:*")
        self.assertIn("3 the peer is not known to have the switch", self.tool("why", process.pid)[0])
        process, _ = self.start_pair("--rule", "use tcp client * *:*")
        self.assertIn("no rule can match", self.tool("why", process.pid, code=1)[0])
        plain = self.start("sleep", "60", switched=False)
        self.assertIn("without LD_PRELOAD", self.tool("why", plain.pid, code=1)[0])
        self.assertIn("there is no process", self.tool("why", 4194303, code=1)[1])

    def test_it_tells_that_a_static_program_loads_no_library(self):
        source, program = self.folder / "static.c", self.folder / "static"
        source.write_text("#include <unistd.h>\nint main(void) { return pause(); }\n")
        subprocess.run(["cc", "-static", "-o", program, source], check=True)
        process = self.start(*self.run_words(program), switched=False)
        while not os.path.exists(f"/proc/{process.pid}/exe") or "static" not in os.readlink(f"/proc/{process.pid}/exe"):
            self.assertIsNone(process.poll())
        self.assertIn("static program", self.tool("why", process.pid, code=1)[0])

    def test_the_exit_status_is_the_programs(self):
        for command, code in ((["sh", "-c", "exit 7"], 7), (["/nowhere"], 127), ([self.folder], 126)):
            self.run_program(*self.run_words(*command), switched=False, code=code)

    def test_the_rule_that_decides_is_named(self):
        file = self.folder / "rules"
        file.write_text("# rules\nuse tcp client curl 10.0.0.0/8:*\nuse both client * *:80-90\n")
        config = {"ESDP_SWITCH_CONFIG": str(file)}
        for words, expected in (
            (("curl", "client", "10.1.1.1:80"), f"tcp\t{file}:2: use tcp client curl 10.0.0.0/8:*\n"),
            (("/usr/bin/wget", "client", "[::1]:80"), f"both\t{file}:3: use both client * *:80-90\n"),
            (("wget", "server", "0.0.0.0:80"), "tcp\tno rule matches\n"),
        ):
            self.assertEqual(self.tool("check", *words, **config), (expected, ""))
        more = {"ESDP_SWITCH_RULES": "use sdp client * *:*;broken", **config}
        output, errors = self.tool("check", "curl", "client", "10.1.1.1:80", code=1, **more)
        self.assertEqual(output, "sdp\tESDP_SWITCH_RULES:1: use sdp client * *:*\n")
        self.assertEqual(errors, "ESDP_SWITCH_RULES:2: a line begins with use, peers or log: 'broken'\n")

    def test_a_command_line_that_is_not_understood_is_told(self):
        for words in ((), ("walk",), ("run",), ("run", "--bogus", "x"), ("check", "x"), ("why", "x"), ("list", "x")):
            self.assertNotEqual(self.tool(*words, code=2)[1], "")
        self.assertNotEqual(self.tool("check", "x", "client", "here:80", code=2)[1], "")
        self.assertIn("not there", self.tool("run", "--library", "/nowhere", "true", code=1)[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
