#!/usr/bin/env python3
"""A program that hands memory over by events, and the shared library as this build makes it: plain, or with the thread
sanitizer inside, which then sees both sides of each transfer."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

RUNFILES = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
LIBRARY = RUNFILES / "impl/package/libesdp.so"
PACKAGES = ("absl_status", "absl_statusor", "absl_time", "absl_span")


def run(*command, code=0, **arguments):
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, timeout=300, **arguments
    )
    if result.returncode != code:
        raise AssertionError(f"{command} ended with {result.returncode}\n{result.stdout}{result.stderr}")
    return result


class SanitizerTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("libesdp.so", "libesdp.so.0.1"):
            shutil.copy(LIBRARY, self.folder / name)
        self.sanitized = "__tsan_" in run("nm", "-D", LIBRARY).stdout
        compiler = ["clang++-14", "-fsanitize=thread"] if self.sanitized else ["g++"]
        needed = run("pkg-config", "--cflags", "--libs", *PACKAGES).stdout.split()
        self.program = self.folder / "handover"
        source = RUNFILES / "tests/package/handover.cc"
        ours = [f"-I{RUNFILES / 'api'}", f"-L{self.folder}", "-lesdp"]
        run(*compiler, "-std=c++20", "-g", "-O1", source, "-o", self.program, *ours, *needed)
        self.environment = dict(os.environ, LD_LIBRARY_PATH=str(self.folder), TSAN_OPTIONS="exitcode=66")

    def test_events_hand_memory_over_from_thread_to_thread(self):
        self.assertEqual("4950\n", run(self.program, env=self.environment).stdout)

    def test_memory_that_is_used_before_its_event_is_found(self):
        if self.sanitized:
            said = run(self.program, "races", code=66, env=self.environment).stderr
            self.assertIn("data race", said)
            self.assertIn("libesdp.so", said, "also the library's own part in it")


if __name__ == "__main__":
    unittest.main(verbosity=2)
