"""Starts samples and tools for tests, and ends them whatever happens."""

import contextlib
import os
import re
import socket
import subprocess
import tempfile
import unittest

RUNFILES = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
LIMIT = 150.0  # seconds for anything here, on a slow machine and under a sanitizer


@contextlib.contextmanager
def nobody_listens():
    """A port that refuses: bound, so that no other process listens there meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield str(taken.getsockname()[1])


class ProgramTest(unittest.TestCase):
    def run_program(self, *command, text_in=None, code=0, temporary=None):
        """Runs to the end and gives standard output. `temporary`: a folder in place of /tmp."""
        environment = dict(os.environ, TMPDIR=temporary) if temporary else None
        result = subprocess.run(
            [str(word) for word in command],
            input=text_in,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
            env=environment,
        )
        self.assertEqual(code, result.returncode, "%s\n%s%s" % (" ".join(map(str, command)), result.stdout, result.stderr))
        self.complaints = result.stderr
        return result.stdout

    def start(self, *command, until):
        """Starts a server; gives it and the match of the line that says it is up."""
        errors = tempfile.TemporaryFile("w+")
        self.addCleanup(errors.close)
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, text=True)
        process.errors = errors
        self.addCleanup(self._end, process)
        for line in process.stdout:
            match = re.search(until, line)
            if match:
                return process, match
        errors.seek(0)
        self.fail("%s never printed %s\n%s" % (" ".join(map(str, command)), until, errors.read()))

    def finish(self, process):
        """What is left of a server's output, when it ends by itself and well."""
        output, _ = process.communicate(timeout=LIMIT)
        process.errors.seek(0)
        self.assertEqual(0, process.returncode, process.errors.read())
        return output

    @staticmethod
    def _end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        if not process.stdout.closed:
            process.stdout.close()
