#!/usr/bin/env python3
"""Files on a disk that fails: where a sync has failed, nothing that was brought or fetched is gone on behind."""

import filecmp
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../programs"))

from programs import RUNFILES, ProgramTest

SERVE = os.path.join(RUNFILES, "tools/esdp_serve/esdp_serve")
COPY = os.path.join(RUNFILES, "tools/esdp_copy/esdp_copy")
GET = os.path.join(RUNFILES, "tools/esdp_get/esdp_get")
MIB = 1 << 20
OWN_MOUNTS = "ESDP_TEST_OWN_MOUNTS"


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


class FailingDisk:
    """A file system on a device that has no room for what it promises, until it is mended."""

    def __init__(self, folder):
        self.below, self.path = (os.path.join(folder, name) for name in ("below", "disk"))
        self.image, self.filler = (os.path.join(self.below, name) for name in ("image", "filler"))
        os.mkdir(self.below)
        os.mkdir(self.path)
        run("mount", "-t", "tmpfs", "-o", "size=160m", "none", self.below)
        with open(self.image, "wb") as file:
            file.truncate(256 * MIB)
        # What tells of files is there from the beginning: only their bytes find no room.
        run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "nodiscard,lazy_itable_init=0", self.image)
        self.mount()
        os.sync()
        with open(self.filler, "wb", buffering=0) as file:
            try:
                while file.write(bytes(MIB)):
                    pass
            except OSError:
                pass

    def mount(self):
        run("mount", "-o", "loop", self.image, self.path)

    def mend(self):
        os.remove(self.filler)

    def forget(self):
        """Afterwards only what is on the medium is there."""
        run("umount", self.path)
        self.mount()

    def remove(self):
        run("umount", self.path)
        run("umount", self.below)

    def names(self):
        return sorted(set(os.listdir(self.path)) - {"lost+found"})


class FailingDiskTest(ProgramTest):
    def setUp(self):
        if OWN_MOUNTS not in os.environ:
            self.skipTest("a namespace of mounts of its own, or a loop device, cannot be had here")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.disk = FailingDisk(folder.name)
        self.addCleanup(self.disk.remove)
        self.good = os.path.join(folder.name, "good")
        os.mkdir(self.good)

    def make(self, length):
        path = os.path.join(self.good, "file")
        with open(path, "wb") as file:
            file.write(os.urandom(length))
        return path

    def serve(self, folder):
        server, match = self.start(SERVE, folder, until=r"listening on (\S+)$")
        return server, match.group(1)

    def is_on_the_medium(self, path):
        self.disk.forget()
        self.assertEqual(["file"], self.disk.names())
        self.assertTrue(filecmp.cmp(path, os.path.join(self.disk.path, "file"), shallow=False))

    def fails_and_then_gets(self, *options):
        path = self.make(5 * MIB + 11)
        _, address = self.serve(self.good)
        words = ("get", address, "file", "--to", self.disk.path, "--sync", *options)
        self.run_program(GET, *words, code=1)
        self.assertIn("cannot be brought to disk", self.complaints)
        self.assertEqual([], self.disk.names())
        self.disk.mend()
        self.run_program(GET, *words, "--resume")
        self.is_on_the_medium(path)

    def test_a_get_goes_on_behind_nothing_that_its_disk_has_lost(self):
        self.fails_and_then_gets()

    def test_a_get_that_sums_goes_on_behind_nothing_that_its_disk_has_lost(self):
        self.fails_and_then_gets("--crc")

    def fails_and_then_puts(self, length, *options):
        path = self.make(length)
        server, address = self.serve(self.disk.path)
        self.run_program("sh", "-c", '! "$0" "$@"', GET, "put", address, path, *options)
        self.assertNotEqual("", self.complaints)
        self.assertEqual([], self.disk.names())
        self.disk.mend()
        self.run_program(GET, "put", address, path, "--resume", *options)
        server.kill()
        server.wait()
        self.is_on_the_medium(path)

    def test_a_put_goes_on_behind_nothing_that_the_disk_there_has_lost(self):
        self.fails_and_then_puts(5 * MIB + 11)

    def test_a_put_that_syncs_on_the_way_goes_on_behind_nothing_that_the_disk_there_has_lost(self):
        self.fails_and_then_puts(70 * MIB, "--sync")

    def test_a_put_that_sums_and_syncs_on_the_way_goes_on_behind_nothing_either(self):
        self.fails_and_then_puts(70 * MIB, "--sync", "--crc")

    def test_a_copy_goes_on_behind_nothing_that_the_disk_there_has_lost(self):
        path = self.make(5 * MIB + 11)
        server, match = self.start(COPY, "--serve", self.disk.path, "--sessions", 2, until=r"listening on (\S+)$")
        self.run_program("sh", "-c", '! "$0" "$@"', COPY, path, match.group(1))
        self.assertIn("cannot be brought to disk", self.complaints)
        self.assertEqual(0, os.path.getsize(os.path.join(self.disk.path, "file.part")))
        self.disk.mend()
        self.run_program(COPY, path, match.group(1), "--resume")
        self.finish(server)
        self.is_on_the_medium(path)


def enter_own_mounts():
    """Goes on in a namespace of its own, where there can be one with such a disk."""
    if OWN_MOUNTS in os.environ:
        return
    private = ("unshare", "--mount", "--propagation", "private")
    with tempfile.TemporaryDirectory() as folder:
        trial = "import failing_disk_test as test, sys; test.FailingDisk(sys.argv[1]).remove()"
        here = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(__file__)))
        tried = subprocess.run((*private, sys.executable, "-c", trial, folder), capture_output=True, env=here, check=False)
    if tried.returncode == 0:
        os.environ[OWN_MOUNTS] = "1"
        os.execvp("unshare", (*private, sys.executable, *sys.argv))


if __name__ == "__main__":
    enter_own_mounts()
    unittest.main(verbosity=2)
