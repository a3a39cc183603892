#!/usr/bin/env python3
"""esdp_serve and esdp_get as they are run: trees, resumed files, names that lead out, signals, counts."""

import filecmp
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../programs"))

from programs import LIMIT, RUNFILES, ProgramTest, nobody_listens

SERVE = os.path.join(RUNFILES, "tools/esdp_serve/esdp_serve")
GET = os.path.join(RUNFILES, "tools/esdp_get/esdp_get")
CHUNK = 1 << 20


class EsdpServeTest(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.near, self.far = (os.path.join(folder.name, name) for name in ("near", "far"))
        os.mkdir(self.near)
        os.mkdir(self.far)

    def serve(self, *options):
        server, match = self.start(SERVE, self.far, *options, until=r"listening on (\S+)$")
        return server, match.group(1)

    def make(self, name, length):
        path = os.path.join(self.far, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(os.urandom(length))
        return path

    def get(self, address, *words, code=0):
        return self.run_program(GET, "get", address, *words, "--to", self.near, code=code)

    def same(self, name):
        near = os.path.join(self.near, os.path.basename(name))
        self.assertTrue(filecmp.cmp(os.path.join(self.far, name), near, shallow=False), name)

    def test_files_arrive_whole_with_their_times_and_nothing_else_is_left(self):
        _, address = self.serve()
        names = ("empty", "small", "a/large")
        for name, length in zip(names, (0, 5000, 7 * CHUNK + 11)):
            os.utime(self.make(name, length), ns=(0, 1_700_000_000_123_456_789))
        for options in ((), ("--crc",), ("--sync", "--resume"), ("--sha256", "--crc", "--resume")):
            self.get(address, *names, *options)
            self.assertEqual(["empty", "large", "small"], sorted(os.listdir(self.near)))
            for name in names:
                self.same(name)
            self.assertEqual(1_700_000_000_123_456_789, os.stat(os.path.join(self.near, "small")).st_mtime_ns)

    def test_a_tree_of_ten_thousand_files_arrives_whole(self):
        _, address = self.serve()
        for folder in range(100):
            os.makedirs(os.path.join(self.far, "tree/%d/deeper" % folder))
            for file in range(100):
                with open(os.path.join(self.far, "tree/%d/deeper/%d" % (folder, file)), "w") as one:
                    one.write("%d of %d\n" % (file, folder) * (file % 7))
        self.get(address, "tree", "--recursive", "--quiet")
        comparison = filecmp.dircmp(os.path.join(self.far, "tree"), os.path.join(self.near, "tree"))
        seen = self.compare(comparison)
        self.assertEqual(10_000, seen)

    def compare(self, comparison):
        self.assertEqual([], comparison.left_only + comparison.right_only + comparison.funny_files)
        matches, mismatches, errors = filecmp.cmpfiles(
            comparison.left, comparison.right, comparison.common_files, shallow=False
        )
        self.assertEqual([], mismatches + errors)
        return len(matches) + sum(self.compare(one) for one in comparison.subdirs.values())

    def test_a_sparse_file_of_20_gib_stays_sparse(self):
        _, address = self.serve()
        with open(os.path.join(self.far, "sparse"), "wb") as file:
            file.truncate(20 << 30)
            file.seek(15 << 30)
            file.write(b"in the middle")
        self.get(address, "sparse")
        about = os.stat(os.path.join(self.near, "sparse"))
        self.assertEqual(20 << 30, about.st_size)
        self.assertLess(about.st_blocks * 512, 8 * CHUNK)
        with open(os.path.join(self.near, "sparse"), "rb") as file:
            file.seek(15 << 30)
            self.assertEqual(b"in the middle\0", file.read(14))

    def test_nothing_outside_is_served_and_what_is_no_file_is_told(self):
        with open(os.path.join(self.near, "outside"), "w") as file:
            file.write("not to be had")
        os.symlink("../near/outside", os.path.join(self.far, "out"))
        os.symlink("/proc/self", os.path.join(self.far, "proc"))
        os.mkfifo(os.path.join(self.far, "fifo"))
        os.mkdir(os.path.join(self.far, "folder"))
        _, address = self.serve()
        for name, reason in (
            ("../near/outside", "goes up"),
            ("folder/../../near/outside", "goes up"),
            (os.path.join(self.near, "outside"), "absolute"),
            ("out", "leads out"),
            ("proc/environ", "leads out"),
            ("fifo", "no regular file"),
            ("folder", "no regular file"),
            ("nothing", "no such file"),
            ("x" * 4096, "no name"),
            ("x" * 4097, "longer than 4096"),
        ):
            self.get(address, name, code=3)
            self.assertIn(reason, self.complaints)
        self.assertEqual(["outside"], os.listdir(self.near))

    def test_folders_are_listed_and_files_described(self):
        self.make("b", 10)
        self.make("a/x", 20)
        os.rename(self.make("c", 5), os.path.join(self.far, "bell\a"))
        _, address = self.serve()
        listed = self.run_program(GET, "ls", address)
        self.assertRegex(listed, r"(?s)^folder +\d+ .* a\nfile +10 .* b\nfile +5 .* bell\\x07\n$")
        self.assertRegex(self.run_program(GET, "ls", address, "a"), r"^file +20 .* x\n$")
        self.assertRegex(self.run_program(GET, "stat", address, "a/x", "a"), r"(?s)^file +20 .* a/x\nfolder .* a\n$")
        self.run_program(GET, "stat", address, "nothing", code=3)
        self.assertIn("nothing: no such file", self.complaints)

    def interrupted(self, address, name, *options):
        """A fetch that has got some of the file, and is killed then."""
        words = ("get", address, name, "--to", self.near, "--progress", *options)
        client, _ = self.start("sh", "-c", 'exec "$0" "$@" 2>&1', GET, *words, until=name)
        limit = time.monotonic() + LIMIT
        while not any(os.path.getsize(os.path.join(self.near, part)) > 3 * CHUNK for part in os.listdir(self.near)):
            self.assertLess(time.monotonic(), limit)
        return client

    def test_a_client_that_was_killed_goes_on_where_it_was(self):
        self.make("long", 300 * CHUNK)
        _, address = self.serve()
        client = self.interrupted(address, "long")
        client.kill()
        client.wait()
        self.assertEqual(1, len(os.listdir(self.near)))
        self.assertNotEqual(["long"], os.listdir(self.near))
        self.get(address, "long", "--resume")
        self.same("long")
        self.assertEqual(["long"], os.listdir(self.near))

    def test_a_chunk_that_was_not_written_before_the_end_is_fetched_again(self):
        # Several are on their way to the medium at once, and a kill or a full disk may leave a later one there alone.
        self.make("long", 300 * CHUNK)
        _, address = self.serve()
        client = self.interrupted(address, "long")
        client.kill()
        client.wait()
        (part,) = (os.path.join(self.near, name) for name in os.listdir(self.near))
        subprocess.run(["fallocate", "--punch-hole", "--offset", str(CHUNK), "--length", str(CHUNK), part], check=True)
        self.get(address, "long", "--resume")
        self.same("long")

    def test_a_client_that_sums_and_was_killed_brings_nothing_that_is_not_as_it_was_summed(self):
        self.make("long", 300 * CHUNK)
        _, address = self.serve()
        client = self.interrupted(address, "long", "--crc")
        client.kill()
        client.wait()
        (part,) = (os.path.join(self.near, name) for name in os.listdir(self.near) if name.endswith(".part"))
        with open(part, "r+b") as file:
            byte = file.read(1)[0]
            file.seek(0)
            file.write(bytes([byte ^ 1]))
        self.get(address, "long", "--resume", "--crc", "--sha256")
        self.same("long")
        self.assertEqual(["long"], os.listdir(self.near))

    def test_a_server_that_was_killed_is_told_as_worth_another_run(self):
        self.make("long", 300 * CHUNK)
        server, address = self.serve()
        client = self.interrupted(address, "long")
        server.kill()
        output, _ = client.communicate(timeout=LIMIT)
        self.assertEqual(1, client.returncode, output)
        self.assertIn("run again", output)
        _, address = self.serve()
        self.get(address, "long", "--resume")
        self.same("long")

    def test_a_file_that_is_written_to_meanwhile_is_not_taken_for_the_old_one(self):
        path = self.make("file", 300 * CHUNK)
        _, address = self.serve()
        client = self.interrupted(address, "file")
        with open(path, "r+b") as file:
            file.write(b"another beginning")
        output, _ = client.communicate(timeout=LIMIT)
        self.assertEqual(1, client.returncode, output)
        self.assertIn("written to meanwhile", output)
        self.assertEqual([], os.listdir(self.near))
        self.get(address, "file")
        self.same("file")

    def test_a_disk_without_room_is_told(self):
        self.make("file", 20 * CHUNK)
        _, address = self.serve()
        command = 'trap "" XFSZ; ulimit -f 10240; exec "$0" "$@"'  # blocks of 512: 5 MiB
        self.run_program("sh", "-c", command, GET, "get", address, "file", "--to", self.near, code=1)
        self.assertRegex(self.complaints, "no room for it|File too large")  # where none can be taken ahead

    def put(self, address, *words, code=0):
        return self.run_program(GET, "put", address, *words, code=code)

    def mine(self, name, length):
        path = os.path.join(self.near, name)
        with open(path, "wb") as file:
            file.write(os.urandom(length))
        return path

    def test_files_are_brought_whole(self):
        os.mkdir(os.path.join(self.far, "folder"))
        _, address = self.serve()
        paths = [self.mine(name, length) for name, length in (("empty", 0), ("one", 1), ("many", 5 * CHUNK + 3))]
        self.assertEqual("empty\none\nmany\n", self.put(address, *paths))
        self.put(address, *paths, code=3)
        self.assertIn("is there", self.complaints)
        self.put(address, *paths, "--crc", "--to", "folder")
        self.put(address, *paths, "--crc", "--replace", "--quiet")
        for name in ("empty", "one", "many"):
            self.same(name)
            self.same("folder/" + name)
        self.assertEqual(["empty", "folder", "many", "one"], sorted(os.listdir(self.far)))

    def test_a_tree_is_brought_whole(self):
        for folder in range(10):
            os.makedirs(os.path.join(self.near, "tree/%d/deeper" % folder))
            for file in range(10):
                with open(os.path.join(self.near, "tree/%d/deeper/%d" % (folder, file)), "w") as one:
                    one.write("%d of %d\n" % (file, folder) * (file % 7))
        os.symlink("deeper/1", os.path.join(self.near, "tree/1/link"))
        os.symlink("..", os.path.join(self.near, "tree/1/up"))
        os.mkfifo(os.path.join(self.near, "tree/pipe"))
        _, address = self.serve()
        tree = os.path.join(self.near, "tree")
        self.put(address, tree, "--recursive", "--quiet")
        self.assertRegex(self.complaints, "(?s)tree/1/up: passed over.*tree/pipe: passed over")
        os.remove(os.path.join(tree, "pipe"))
        os.remove(os.path.join(tree, "1/up"))
        self.assertEqual(101, self.compare(filecmp.dircmp(tree, os.path.join(self.far, "tree"))))
        self.put(address, tree, "--recursive", "--replace", "--quiet", "--to", "tree/1")
        self.assertEqual(101, self.compare(filecmp.dircmp(tree, os.path.join(self.far, "tree/1/tree"))))
        with open(os.path.join(self.far, "file"), "w") as file:
            file.write("no folder")
        os.rename(tree, os.path.join(self.near, "file"))
        self.put(address, os.path.join(self.near, "file"), "--recursive", code=3)
        self.assertIn("is there", self.complaints)
        self.put(address, os.path.join(self.near, "file"), "--recursive", "--to", "../near", code=3)
        self.assertIn("goes up", self.complaints)

    def test_a_sparse_file_of_20_gib_is_brought_sparse(self):
        path = os.path.join(self.near, "sparse")
        with open(path, "wb") as file:
            file.truncate(20 << 30)
            file.seek(15 << 30)
            file.write(b"in the middle")
        _, address = self.serve()
        self.put(address, path, "--crc")
        about = os.stat(os.path.join(self.far, "sparse"))
        self.assertEqual(20 << 30, about.st_size)
        self.assertLess(about.st_blocks * 512, 8 * CHUNK)
        with open(os.path.join(self.far, "sparse"), "rb") as file:
            file.seek(15 << 30)
            self.assertEqual(b"in the middle\0", file.read(14))

    def test_a_client_that_was_killed_brings_the_rest(self):
        path = self.mine("long", 300 * CHUNK)
        _, address = self.serve()
        client, _ = self.start("sh", "-c", 'exec "$0" "$@" 2>&1', GET, "put", address, path, "--progress", until="long")
        limit = time.monotonic() + LIMIT
        while not any(os.path.getsize(os.path.join(self.far, part)) > 3 * CHUNK for part in os.listdir(self.far)):
            self.assertLess(time.monotonic(), limit)
        client.kill()
        client.wait()
        while self.run_program("sh", "-c", '"$0" "$@" || true', GET, "put", address, path, "--resume", "--quiet") or self.complaints:
            self.assertIn("another client", self.complaints)  # the server has not noticed yet
            self.assertLess(time.monotonic(), limit)
        self.same("long")
        self.assertEqual(["long"], os.listdir(self.far))

    def test_a_server_that_was_killed_goes_on_with_what_it_has_got(self):
        path = self.mine("long", 300 * CHUNK)
        for options in ((), ("--crc",)):
            server, address = self.serve()
            client, _ = self.start(
                "sh", "-c", 'exec "$0" "$@" 2>&1', GET, "put", address, path, "--progress", *options, until="long"
            )
            limit = time.monotonic() + LIMIT
            while not any(name.endswith(".sums") and os.path.getsize(os.path.join(self.far, name)) >= 8 * 24 for name in os.listdir(self.far)):
                self.assertLess(time.monotonic(), limit)
            server.kill()
            output, _ = client.communicate(timeout=LIMIT)
            self.assertEqual(1, client.returncode, output)
            self.assertIn("run again", output)
            self.assertEqual(2, len(os.listdir(self.far)))
            _, address = self.serve()
            self.assertEqual("", self.run_program(GET, "ls", address))
            self.put(address, path, "--resume", *options)
            self.same("long")
            self.assertEqual(["long"], os.listdir(self.far))
            os.remove(os.path.join(self.far, "long"))

    def test_a_disk_that_gets_full_there_is_told_and_the_server_goes_on(self):
        path = self.mine("file", 20 * CHUNK)
        command = 'ulimit -f 10240; exec "$0" "$@"'  # blocks of 512: 5 MiB
        _, match = self.start("sh", "-c", command, SERVE, self.far, until=r"listening on (\S+)$")
        self.put(match.group(1), path, code=1)
        self.assertIn("no room", self.complaints)
        small = self.mine("small", 1000)
        self.put(match.group(1), small)
        self.same("small")

    def test_a_server_that_only_lets_read_takes_nothing(self):
        _, address = self.serve("--read-only")
        self.put(address, self.mine("file", 10), code=3)
        self.assertIn("only lets read", self.complaints)
        self.assertEqual([], os.listdir(self.far))

    def test_a_signal_lets_what_flows_come_to_its_end(self):
        self.make("long", 300 * CHUNK)
        for number in (signal.SIGTERM, signal.SIGINT):
            server, address = self.serve()
            client = self.interrupted(address, "long")
            server.send_signal(number)
            output, _ = client.communicate(timeout=LIMIT)
            self.assertEqual(0, client.returncode, output)
            self.same("long")
            self.finish(server)
            os.remove(os.path.join(self.near, "long"))

    def test_a_second_signal_ends_it_at_once(self):
        self.make("long", 300 * CHUNK)
        server, address = self.serve()
        client = self.interrupted(address, "long")
        client.send_signal(signal.SIGSTOP)
        server.send_signal(signal.SIGTERM)
        server.send_signal(signal.SIGINT)
        self.finish(server)
        client.kill()

    def test_what_it_counts_is_told_over_http(self):
        self.make("file", 3 * CHUNK)
        server, match = self.start(SERVE, self.far, "--metrics", "127.0.0.1:0", until=r"metrics on (\S+)$")
        counts = "http://%s/metrics" % match.group(1)
        address = re.search(r"listening on (\S+)", server.stdout.readline()).group(1)
        self.get(address, "file")
        self.get(address, "nothing", code=3)
        with urllib.request.urlopen(counts, timeout=LIMIT) as answer:
            text = answer.read().decode()
        for line in (
            "esdp_serve_clients_accepted_total 2",
            "esdp_serve_sent_bytes_total %d" % (3 * CHUNK),
            'esdp_serve_answers_total{status="NOT_FOUND"} 1',
            "# TYPE esdp_serve_clients gauge",
        ):
            self.assertIn(line + "\n", text)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen("http://%s/other" % match.group(1), timeout=LIMIT)
        self.assertEqual(404, refused.exception.code)
        refused.exception.close()

    def test_wrong_options_are_refused_with_the_reason(self):
        for program, words, reason in (
            (SERVE, (), "which folder"),
            (SERVE, ("a", "b"), "one ROOT"),
            (SERVE, ("a", "--bogus", "x"), "--bogus"),
            (SERVE, ("a", "--listen", "nowhere"), "nowhere"),
            (SERVE, ("a", "--clients", "0"), "--clients"),
            (SERVE, ("a", "--slots"), "--slots"),
            (SERVE, ("a", "--weight", "10.0.0.0/8=0"), "--weight"),
            (GET, (), "what to do"),
            (GET, ("fetch", "x"), "fetch"),
            (GET, ("get",), "ADDRESS:PORT"),
            (GET, ("get", "nowhere", "x"), "nowhere"),
            (GET, ("get", "127.0.0.1:1"), "NAME"),
            (GET, ("ls", "127.0.0.1:1", "--bogus"), "--bogus"),
            (GET, ("ls", "127.0.0.1:1", "--weight", "0"), "--weight"),
            (GET, ("ls", "127.0.0.1:1", "--weight", "101"), "--weight"),
        ):
            self.run_program(program, *words, code=2)
            self.assertIn(reason, self.complaints)
        self.run_program(SERVE, os.path.join(self.near, "nothing"), code=3)
        self.assertIn("No such file", self.complaints)
        with nobody_listens() as port:
            self.run_program(GET, "ls", "127.0.0.1:" + port, code=1)
        self.assertIn("nobody listens there", self.complaints)
        for program in (SERVE, GET):
            self.assertIn("--help", self.run_program(program, "--help"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
