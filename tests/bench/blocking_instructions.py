#!/usr/bin/env python3
"""Instructions in user space of blocking Writes and Reads of 1 MiB, both ends: zero-copy beside copying.

    blocking_instructions.py PROGRAM FABRIC ADDRESS      PROGRAM is blocking_bytes

Fails where zero-copy takes more than a share of copying that docs/performance.md has the goal of. Counted by callgrind, which
works where the processor counts nothing, as in the emulated guest. What a program does besides is subtracted: each count is
the difference of a long transfer and a short one.
"""

import os
import re
import subprocess
import sys
import tempfile

SIZE = 1 << 20
FEW, MANY = 4, 36  # calls
LEAST = 5.25  # times less than copying; counts of several boots differ by a twentieth


def counted(program, fabric, address, path, times):
    """(instructions, bytes copied)"""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=%s/out" % folder, program, fabric, address]
        # A copy by `rep movsb` would be counted as one instruction for each byte: it is made with vectors.
        environment = dict(os.environ, GLIBC_TUNABLES="glibc.cpu.x86_rep_movsb_threshold=1073741824")
        done = subprocess.run(
            command + [path, str(SIZE), str(times)], capture_output=True, text=True, env=environment, timeout=300, check=False
        )
        if done.returncode != 0:
            raise RuntimeError("%s ended with %d: %s" % (program, done.returncode, done.stderr[-500:]))
        with open(folder + "/out", encoding="utf-8") as out:
            found = re.search(r"^(?:summary|totals): (\d+)", out.read(), re.MULTILINE)
        return int(found.group(1)), int(done.stdout)


def for_each_byte(program, fabric, address, path):
    few, many = (counted(program, fabric, address, path, times) for times in (FEW, MANY))
    bytes_moved = (MANY - FEW) * SIZE
    return tuple((more - less) / bytes_moved for less, more in zip(few, many))


def compare(program, fabric, address):
    """Prints the figures; True if zero-copy is what it should be."""
    taken, copies = {}, {}
    for path in ("copy", "zcopy"):
        taken[path], copies[path] = for_each_byte(program, fabric, address, path)
        print("%-5s %.1f instructions for each KiB, %.2f copies of each byte" % (path, 1024 * taken[path], copies[path]), flush=True)
    print("zero-copy takes 1/%.1f; at most 1/%.1f is asked for" % (taken["copy"] / taken["zcopy"], LEAST), flush=True)
    return copies["copy"] > 1.5 and copies["zcopy"] < 0.1 and 0 < taken["zcopy"] * LEAST <= taken["copy"]


if __name__ == "__main__":
    sys.exit(0 if compare(*sys.argv[1:]) else 1)
