#!/usr/bin/env python3
"""Instructions in user space of both ends of esdp_perf, for each byte: ZCopy takes a seventh of BCopy's at most."""

import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import instructions

ROOT = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
PERF = ROOT / "tools/esdp_perf/esdp_perf"
FEW, MANY = 8 << 20, 40 << 20  # bytes; what the programs do besides is subtracted
ROUNDS = 3  # how much one poll finds, and so what it costs, depends on who runs when
KINDS = {"BCopy 64 KiB": ("copy", "64K"), "ZCopy 1 MiB": ("zcopy", "1M")}


def on_one_processor():
    """Both ends take turns, however busy the other processors are."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def counted(folder, name, arguments):
    """A program under callgrind, which writes its count when it ends."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=%s/%s" % (folder, name), str(PERF), *arguments]
    # A copy by `rep movsb` would be counted as one instruction for each byte: it is made with vectors.
    environment = dict(os.environ, GLIBC_TUNABLES="glibc.cpu.x86_rep_movsb_threshold=1073741824")
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, preexec_fn=on_one_processor
    )


def of_transfer(path, size, length):
    """{end: instructions}"""
    with tempfile.TemporaryDirectory() as folder:
        with counted(folder, "receiver", ["--server", "--sessions", "1"]) as server:
            port = re.search(r":(\d+)", server.stdout.readline()).group(1)
            options = ["--path", path, "--size", size, "--bytes", str(length), "--quiet"]
            with counted(folder, "sender", ["--connect", "127.0.0.1", "--port", port, *options]) as client:
                client.communicate(timeout=120)
            server.communicate(timeout=60)
        if client.returncode != 0 or server.returncode != 0:
            raise RuntimeError("esdp_perf ended with %s and %s" % (client.returncode, server.returncode))
        found = {}
        for end in ("sender", "receiver"):
            text = pathlib.Path(folder, end).read_text()
            found[end] = int(re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE).group(1))
        return found


def for_each_kib(path, size):
    """{end: instructions}"""
    few, many = of_transfer(path, size, FEW), of_transfer(path, size, MANY)
    return {end: (many[end] - few[end]) * 1024 / (MANY - FEW) for end in few}


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
@unittest.skipUnless(instructions.is_optimised(ROOT / "tests/bench/core_instructions"), "only an optimised build is counted")
class UserInstructionsTest(unittest.TestCase):
    def test_zero_copy_takes_a_seventh_of_what_copying_takes(self):
        both = {}
        for kind, (path, size) in KINDS.items():
            rounds = [for_each_kib(path, size) for _ in range(ROUNDS)]
            for each in rounds:
                print("%-13s sender %6.1f  receiver %6.1f instructions for each KiB" % (kind, each["sender"], each["receiver"]))
            both[kind] = statistics.median(sum(each.values()) for each in rounds)
        self.assertGreater(both["ZCopy 1 MiB"], 0)
        self.assertLessEqual(both["ZCopy 1 MiB"], both["BCopy 64 KiB"] / 7)


if __name__ == "__main__":
    unittest.main(verbosity=2)
