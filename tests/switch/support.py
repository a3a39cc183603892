"""What the tests of the socket switch share: programs under it, and what its log says that went by SDP."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

RUNFILES = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
SHIM = RUNFILES / "impl/switch/shim/libesdp-switch.so"
ENGINE = RUNFILES / "impl/switch/engine/libesdp-switch-engine.so"
BOTH = "use both server * *:*;use both client * *:*"
MOVED = re.compile(r"number (\d+) (connected|accepted): by SDP (\d+) bytes sent, (\d+) received; by TCP (\d+) and (\d+)")


class Moved:
    """One relayed connection, as the log tells at its end."""

    def __init__(self, match):
        self.side = match.group(2)
        self.sdp_sent, self.sdp_received, self.tcp_sent, self.tcp_received = map(int, match.groups()[2:])
        self.sdp = self.sdp_sent + self.sdp_received
        self.tcp = self.tcp_sent + self.tcp_received

    def __repr__(self):
        return f"{self.side}: SDP {self.sdp_sent}/{self.sdp_received}, TCP {self.tcp_sent}/{self.tcp_received}"


class SwitchTest(unittest.TestCase):
    """Has a folder with the two libraries beside each other, as they are installed."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.shim = cls.folder / SHIM.name
        for library in (SHIM, ENGINE):
            shutil.copy(library, cls.folder / library.name)

    def setUp(self):
        self.log = self.folder / "log"
        self.log.unlink(missing_ok=True)
        self.running = []
        self.addCleanup(self.stop_all)

    # With what it has started itself: workers of a server that has failed would hold its output open for ever.
    def stop_all(self):
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def environment(self, rules=BOTH, **more):
        """Of a program under the switch."""
        own = {"LD_PRELOAD": str(self.shim), "ESDP_SWITCH_RULES": rules, "ESDP_SWITCH_CONFIG": "/dev/null"}
        own["ESDP_SWITCH_LOG"] = f"1:file:{self.log}"
        return {**os.environ, **own, **more}

    def plain(self):
        return dict(os.environ)

    def start(self, *command, rules=BOTH, switched=True, **arguments):
        """A program that runs until it ends or the test does, in a process group of its own: some end the whole one."""
        arguments.setdefault("env", self.environment(rules) if switched else self.plain())
        process = subprocess.Popen(
            [str(word) for word in command],
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                "start_new_session": True,
                **arguments,
            },
        )
        self.running.append(process)
        return process

    def finish(self, process, code=0, timeout=60):
        """(output, errors) of a program that ends by itself."""
        output, errors = process.communicate(timeout=timeout)
        self.assertEqual(process.returncode, code, f"{process.args}\n{output}{errors}\n{self.log_text()}")
        return output, errors

    def run_program(self, *command, code=0, **arguments):
        return self.finish(self.start(*command, **arguments), code)

    def start_python(self, text, *arguments, **keywords):
        """A program in Python, which prints its port first where `keywords` say listens."""
        listens = keywords.pop("listens", False)
        process = self.start(sys.executable, "-u", "-c", text, *arguments, **keywords)
        return (process, process.stdout.readline().strip()) if listens else process

    def log_text(self):
        return self.log.read_text() if self.log.exists() else ""

    def moved(self, side=None):
        found = [Moved(match) for match in MOVED.finditer(self.log_text())]
        return [each for each in found if side in (None, each.side)]
