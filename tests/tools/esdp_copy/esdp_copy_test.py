#!/usr/bin/env python3
"""esdp_copy: whole files, broken ones, full disks, and how to go on."""

import hashlib
import os
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../programs"))

from programs import RUNFILES, ProgramTest, nobody_listens

ESDP_COPY = os.path.join(RUNFILES, "tools/esdp_copy/esdp_copy")
PIECE = 1 << 20


class EsdpCopyTest(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.near, self.far = (os.path.join(folder.name, name) for name in ("near", "far"))
        os.mkdir(self.near)
        os.mkdir(self.far)

    def serve(self, *before, sessions=1):
        command = (*before, ESDP_COPY, "--serve", self.far, "--sessions", sessions)
        server, match = self.start(*command, until=r"listening on (\S+)$")
        return server, match.group(1)

    def make(self, name, length):
        path = os.path.join(self.near, name)
        with open(path, "wb") as file:
            file.write(os.urandom(length))
        return path

    def copy(self, *words, code=0):
        return self.run_program(ESDP_COPY, *words, code=code)

    def arrived(self, path):
        """Whether the server's folder has the same file, and nothing else."""
        name = os.path.basename(path)
        self.assertEqual([name], os.listdir(self.far))
        with open(path, "rb") as near, open(os.path.join(self.far, name), "rb") as far:
            self.assertEqual(hashlib.sha256(near.read()).digest(), hashlib.sha256(far.read()).digest())

    def half(self, path, length, spoil=False):
        """What an earlier run has left of the file."""
        with open(path, "rb") as file, open(os.path.join(self.far, os.path.basename(path) + ".part"), "wb") as part:
            part.write(os.urandom(length) if spoil else file.read(length))

    def test_files_of_every_size_arrive_whole(self):
        for length in (0, 1, PIECE - 1, PIECE, PIECE + 1, 20 * PIECE + 12345):
            with self.subTest(length):
                server, address = self.serve()
                path = self.make("file", length)
                self.assertEqual(path + ": copied, SHA-256 equal\n", self.copy(path, address))
                self.assertIn("file: %d bytes\n" % length, self.finish(server))
                self.arrived(path)

    def test_several_files_go_one_after_the_other(self):
        server, address = self.serve(sessions=3)
        paths = [self.make(name, 2 * PIECE + 7) for name in ("a", "b", "c")]
        self.assertEqual(3, self.copy(*paths, address).count("SHA-256 equal"))
        self.finish(server)
        self.assertEqual(["a", "b", "c"], sorted(os.listdir(self.far)))

    def test_it_goes_on_behind_what_an_earlier_run_has_left(self):
        for left in (0, 1, 3 * PIECE + 5, 6 * PIECE):
            with self.subTest(left):
                server, address = self.serve()
                path = self.make("file", 6 * PIECE)
                self.half(path, left)
                self.copy(path, address, "--resume")
                self.finish(server)
                self.arrived(path)

    def test_what_was_left_of_another_file_is_noticed_and_thrown_away(self):
        server, address = self.serve(sessions=2)
        path = self.make("file", 4 * PIECE)
        self.half(path, 2 * PIECE, spoil=True)
        self.copy(path, address, "--resume", code=3)
        self.assertIn("the SHA-256 differs: nothing is kept", self.complaints)
        self.copy(path, address, "--resume")
        self.finish(server)
        self.arrived(path)

    def test_without_resume_it_begins_anew(self):
        server, address = self.serve()
        path = self.make("file", 2 * PIECE)
        self.half(path, PIECE, spoil=True)
        self.copy(path, address)
        self.finish(server)
        self.arrived(path)

    def test_a_disk_without_room_is_told_before_anything_is_sent(self):
        # The limit keeps the test small where a file system cannot take room ahead.
        server, address = self.serve("sh", "-c", 'ulimit -f 10240; exec "$0" "$@"')
        path = os.path.join(self.near, "huge")
        with open(path, "wb") as file:
            file.truncate(1 << 42)  # takes no room here
        self.copy(path, address, code=1)
        self.assertRegex(self.complaints, r"no room for it.*; 0 of \d+ bytes are kept there: run again with --resume")
        self.finish(server)

    def test_a_disk_that_gets_full_on_the_way_keeps_what_has_come(self):
        path = self.make("file", 20 * PIECE)
        server, address = self.serve("sh", "-c", 'ulimit -f 10240; exec "$0" "$@"')  # blocks of 512: 5 MiB
        self.copy(path, address, code=1)
        self.assertRegex(self.complaints, r"cannot be written.*; \d+ of \d+ bytes are kept there: run again with --resume")
        self.finish(server)
        self.assertEqual(["file.part"], os.listdir(self.far))
        self.assertEqual(5 * PIECE, os.path.getsize(os.path.join(self.far, "file.part")))
        server, address = self.serve()
        self.copy(path, address, "--resume")
        self.finish(server)
        self.arrived(path)

    def test_a_server_that_dies_on_the_way_is_told_as_worth_another_run(self):
        path = os.path.join(self.near, "long")
        with open(path, "wb") as file:
            file.truncate(1 << 31)
        server, address = self.serve()
        client, _ = self.start("sh", "-c", 'exec "$0" "$@" 2>&1', ESDP_COPY, path, address, "--progress", until="long")
        server.send_signal(signal.SIGKILL)
        output, _ = client.communicate(timeout=60)
        self.assertEqual(1, client.returncode, output)
        self.assertIn("run again with --resume", output)

    def test_a_client_that_dies_leaves_the_server_for_the_next(self):
        path = os.path.join(self.near, "long")
        with open(path, "wb") as file:
            file.truncate(1 << 31)
        server, address = self.serve(sessions=2)
        client, _ = self.start("sh", "-c", 'exec "$0" "$@" 2>&1', ESDP_COPY, path, address, "--progress", until="long")
        client.kill()
        other = self.make("other", PIECE)
        self.copy(other, address)
        self.finish(server)
        self.assertEqual(["long.part", "other"], sorted(os.listdir(self.far)))

    def test_a_file_that_becomes_shorter_on_the_way_is_told_as_gone_for_good(self):
        path = os.path.join(self.near, "long")
        with open(path, "wb") as file:
            file.truncate(1 << 31)
        _, address = self.serve()
        client, _ = self.start("sh", "-c", 'exec "$0" "$@" 2>&1', ESDP_COPY, path, address, "--progress", until="long")
        os.truncate(path, PIECE)
        output, _ = client.communicate(timeout=60)
        self.assertEqual(3, client.returncode, output)
        self.assertIn(path + ": became shorter while it was read", output)

    def test_a_symbolic_link_in_the_folder_is_not_followed(self):
        outside = os.path.join(self.near, "outside")
        os.symlink(outside, os.path.join(self.far, "file.part"))
        server, address = self.serve()
        self.copy(self.make("file", 10), address, code=3)
        self.finish(server)
        self.assertFalse(os.path.exists(outside))

    def test_what_cannot_be_copied_is_named_with_the_reason(self):
        _, address = self.serve()
        for path, reason in ((os.path.join(self.near, "nothing"), "No such file"), (self.near, "not a plain file")):
            self.copy(path, address, code=3)
            self.assertIn(path, self.complaints)
            self.assertIn(reason, self.complaints)
        with nobody_listens() as port:
            self.copy(self.make("file", 10), "127.0.0.1:" + port, code=1)
        self.assertIn("nobody listens there", self.complaints)

    def test_the_bar_is_drawn_when_asked_for_and_ends_at_all(self):
        server, address = self.serve()
        self.copy(self.make("file", 3 * PIECE), address, "--progress")
        self.finish(server)
        self.assertRegex(self.complaints, r"file 100% \[#{30}\] +\d+\.\d MB/s")

    def test_wrong_options_are_refused_with_the_reason(self):
        for words, reason in (
            (("--bogus", "x"), "--bogus"),
            (("file",), "which file"),
            (("file", "nowhere"), "nowhere"),
            (("--serve",), "--serve"),
            (("--serve", "x", "--sessions", "y"), "--sessions"),
        ):
            self.copy(*words, code=2)
            self.assertIn(reason, self.complaints)
        self.copy("--serve", os.path.join(self.near, "nothing"), code=3)
        self.assertIn("no such folder", self.complaints)


if __name__ == "__main__":
    unittest.main(verbosity=2)
