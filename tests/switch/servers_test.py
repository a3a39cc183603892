#!/usr/bin/env python3
"""Servers of Debian under the switch, as programs_test.py has it: threads that hand descriptors on, splice and a reload by
SCM_RIGHTS, TLS, a process for each connection, both ends that speak first."""

import filecmp
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

from carried import CarriedTest
from support import BOTH, RUNFILES

SHIPPED = RUNFILES / "impl/package/etc/switch.conf"

# A name tells clients of `both` that a port takes SDP: for a moment nobody has it while listeners go from hand to hand.
BOTH_SPEAK = "use both server * *:* wait=1000;" + BOTH
ASKS_NOBODY = "use both server * *:*;use sdp client * *:*"
LARGE = 3 << 20
POSTGRES = next(iter(sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
AS_USER = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
AS_ROOT = ["-u", "root"] if os.geteuid() == 0 else []  # who may write the log


class ServersTest(CarriedTest):
    def large_file(self):
        path = self.folder / "large"
        path.write_bytes(bytes(range(128, 256)) * (LARGE // 128))  # letters are commands to s_client
        return path

    def end(self, server):
        server.terminate()
        return server.communicate(timeout=60)

    # --- memcached ---

    def memcached(self, switched):
        command = [self.program("memcached"), "-p", self.port, "-U", "0", "-l", "127.0.0.1", "-t", "4", *AS_ROOT]
        server = self.start(*command, switched=switched)
        self.listens(server)
        return server

    def memcached_answers(self, switched):
        """What each of its clients prints."""
        where = f"--servers=127.0.0.1:{self.port}"
        value = self.folder / "value"
        value.write_bytes(bytes(range(256)) * 3000)
        capable = [self.program("memccapable"), "-h", "127.0.0.1", "-p", self.port]
        commands = (
            [*capable, "-a"],
            [self.program("memccp"), where, value],
            [self.program("memccat"), where, "value"],
        )
        return [self.run_program(*command, switched=switched, text=False) for command in commands]

    def test_memcached(self):
        self.memcached(False)
        plain = self.memcached_answers(False)
        self.assertTrue(plain[0][0].endswith(b"All tests passed\n"), plain[0])
        for sides in self.each_side():
            server = self.memcached(sides[0])
            self.assertEqual(self.memcached_answers(sides[1]), plain)
            slap = [self.program("memcslap"), f"--servers=127.0.0.1:{self.port}", "--concurrency=4", "--execute-number=500"]
            output, errors = self.run_program(*slap, "--test=get", "--initial-load=500", switched=sides[1])
            self.assertIn("2000 keys", output + errors)
            self.assertEqual(self.end(server), ("", ""))
            self.check_path(all(sides), 4 * 768000 + 2500 * 400)

    # --- haproxy ---

    def haproxy(self, switched, *more, rules=BOTH):
        """Speaks HTTP on the port and plain TCP on the other one; `more` of its arguments."""
        text = HAPROXY.format(folder=self.folder, port=self.port, port2=self.port2, files=self.files, echo=self.echo)
        path = self.folder / "haproxy.conf"
        path.write_text(text)
        server = self.start(self.program("haproxy"), "-q", "-db", "-f", path, *more, switched=switched, rules=rules)
        self.listens(server)
        return server

    def behind_haproxy(self, switched):
        """What it passes on to: files, and what comes back."""
        self.port2, self.files, self.echo = self.fresh_port(), self.fresh_port(), self.fresh_port()
        command = ["-m", "http.server", self.files, "--bind", "127.0.0.1", "-d", self.folder]
        self.listens(self.start(sys.executable, *command, switched=switched), self.files)
        self.listens(self.start_python(ECHO, self.echo, switched=switched), self.echo)

    def test_haproxy(self):
        curl, large = self.program("curl"), self.large_file()
        for sides in self.each_side():
            self.behind_haproxy(sides[1])
            server = self.haproxy(sides[0])
            url, got = f"http://127.0.0.1:{self.port}/large", self.folder / "got"
            words = ["-sS", "-o", got, url, "-o", self.folder / "again", url, "-w", "%{http_code} %{size_download}\n"]
            self.assertEqual(self.run_program(curl, *words, switched=sides[1]), ("200 3145728\n" * 2, ""))
            self.assertTrue(filecmp.cmp(got, large, shallow=False))
            client = self.start_python(TALK, self.port2, switched=sides[1], stdin=subprocess.PIPE)
            self.assertEqual(client.communicate("once\n" + "long" * 100000 + "\n"), ("5\n400001\n", ""))
            self.assertEqual(self.end(server), ("", ""))
            self.check_path(all(sides), 8 * LARGE)

    # The new process takes the listeners of the old one, which goes on with the connections that it has.
    def test_haproxy_hands_its_listeners_on(self):
        self.behind_haproxy(True)
        old = self.haproxy(True, rules=ASKS_NOBODY)
        clients = [self.talker()]
        new = self.haproxy(True, "-x", self.folder / "stats", "-sf", str(old.pid), rules=ASKS_NOBODY)
        clients.append(self.talker())
        for client in clients:
            self.assertEqual(client.communicate("again\n", timeout=60), ("6\n", ""))
        self.finish(old)
        self.assertEqual(self.talker().communicate("more\n", timeout=60), ("5\n", ""))
        by_sdp = lambda: [each for each in self.moved("connected") if each.sdp > 0]
        until = time.monotonic() + 20
        while len(by_sdp()) < 6 and time.monotonic() < until:  # a signal ends haproxy before it has told of its last one
            time.sleep(0.05)
        self.end(new)
        self.assertEqual(len(by_sdp()), 6, self.log_text())  # of three clients, and haproxy's own

    def talker(self):
        """A client that has said something, and heard it."""
        client = self.start_python(TALK, self.port2, stdin=subprocess.PIPE, rules=ASKS_NOBODY)
        client.stdin.write("first\n")
        client.stdin.flush()
        self.assertEqual(client.stdout.readline(), "6\n")
        return client

    # --- rsync ---

    def rsync_daemon(self, switched, files):
        path = self.folder / "rsyncd.conf"
        path.write_text(RSYNCD.format(folder=self.folder, files=files, uid=os.geteuid(), gid=os.getegid()))
        words = ["--daemon", "--no-detach", f"--config={path}", f"--port={self.port}", "--address=127.0.0.1"]
        server = self.start(self.program("rsync"), *words, switched=switched, rules=BOTH_SPEAK)
        self.listens(server)
        return server

    def many_files(self, count):
        files = self.folder / f"many{count}"
        for i in range(count // 100):
            (files / str(i)).mkdir(parents=True)
            for j in range(100):
                (files / str(i) / str(j)).write_text(f"{i} {j} " * (j + 1))
        return files

    def assert_same_tree(self, one, other):
        self.assertEqual(self.run_program("diff", "-r", one, other, switched=False), ("", ""))

    # It forks for each connection; both ends speak first.
    def test_rsync_as_a_daemon_gives_ten_thousand_files_and_takes_some(self):
        rsync, many, few = self.program("rsync"), self.many_files(10000), self.many_files(300)
        for i, sides in enumerate(self.each_side()):
            files = many if all(sides) else few
            server = self.rsync_daemon(sides[0], files)
            (self.folder / f"taken{i}").mkdir()
            got, url = self.folder / f"got{i}", f"rsync://127.0.0.1:{self.port}"

            def run(*words, code=0):
                return self.run_program(rsync, "-r", "--whole-file", *words, switched=sides[1], code=code)

            self.assertEqual(run(f"{url}/files/", got), ("", ""))
            self.assert_same_tree(files, got)
            self.assertEqual(run(f"{few}/", f"{url}/taken{i}/"), ("", ""))
            self.assert_same_tree(few, self.folder / f"taken{i}")
            self.assertIn("No such file or directory", run(f"{url}/files/no", got, code=23)[1])
            self.assertIn("taken2", run(f"{url}/")[0].split())
            self.end(server)
            self.check_path(all(sides), 2 * sum(path.stat().st_size for path in files.glob("*/*")))

    # --- openssl ---

    def openssl_server(self, switched, *words, **more):
        command = [self.program("openssl"), "s_server", "-quiet", "-accept", f"127.0.0.1:{self.port}"]
        command += ["-cert", self.folder / "cert", "-key", self.folder / "key", *words]
        server = self.start(*command, switched=switched, **more)
        self.listens(server)
        return server

    def openssl_client(self, switched, *words, **more):
        command = [self.program("openssl"), "s_client", "-quiet", "-CAfile", self.folder / "cert"]
        command += ["-verify_return_error", "-connect", f"127.0.0.1:{self.port}", *words]
        return self.start(*command, switched=switched, text=False, **more)

    def test_openssl_s_server_and_s_client(self):
        certificate = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-subj", "/CN=localhost"]
        certificate += ["-keyout", self.folder / "key", "-out", self.folder / "cert"]
        self.run_program(self.program("openssl"), *certificate, switched=False)
        large, got = self.large_file(), self.folder / "got"
        for sides in self.each_side():
            server = self.openssl_server(sides[0], "-naccept", "2", "-HTTP", cwd=self.folder)
            for _ in range(2):
                client = self.openssl_client(sides[1], stdin=subprocess.PIPE)
                output, errors = client.communicate(b"GET /large HTTP/1.0\r\n\r\n", timeout=60)
                self.assertEqual((client.returncode, output == large.read_bytes()), (0, True), errors)
            self.finish(server)
            with open(got, "wb") as output, open(large, "rb") as source:
                server = self.openssl_server(sides[0], "-naccept", "1", stdin=subprocess.PIPE, stdout=output)
                self.finish(self.openssl_client(sides[1], "-no_ign_eof", stdin=source))
                self.assertEqual(server.wait(timeout=60), 0)
            self.assertTrue(filecmp.cmp(got, large, shallow=False))
            self.check_path(all(sides), 6 * LARGE)

    # --- ssh ---

    def sshd(self, rules):
        for name in ("host", "user"):
            words = ["-q", "-t", "ed25519", "-N", "", "-f", self.folder / name]
            if not (self.folder / name).exists():
                self.run_program(self.program("ssh-keygen"), *words, switched=False)
        path = self.folder / "sshd_config"
        path.write_text(SSHD.format(folder=self.folder, port=self.port))
        os.makedirs("/run/sshd", exist_ok=True)  # where it has no privileges
        server = self.start(self.program("sshd"), "-D", "-e", "-f", path, rules=rules, stderr=subprocess.DEVNULL)
        self.listens(server)
        return server

    def ssh(self, port, text, rules):
        words = [f"-oUserKnownHostsFile={self.folder}/known", "-oStrictHostKeyChecking=no", "-oLogLevel=ERROR", "-oBatchMode=yes"]
        command = [self.program("ssh"), "-F", "none", "-i", self.folder / "user", *words, "-p", port, "127.0.0.1", "cat; exit 3"]
        client = self.start(*command, rules=rules, stdin=subprocess.PIPE)
        output, errors = client.communicate(text, timeout=60)
        self.assertEqual((client.returncode, output == text, errors), (3, True, ""))

    # Its server locks itself up with seccomp, closes what it does not know, and executes itself again.
    @unittest.skipUnless(os.geteuid() == 0, "sshd needs root for its separation of privileges")
    def test_ssh_is_not_harmed(self):
        shipped = [line for line in SHIPPED.read_text().splitlines() if line.startswith("use ")]
        rules, text = ";".join(shipped) + ";" + BOTH, "line\n" * 100000
        self.sshd(rules)
        self.ssh(self.port, text, rules)
        self.check_path(False, 0)
        # The client by SDP, to what passes it on to a server without the switch.
        relay = self.fresh_port()
        words = [f"TCP-LISTEN:{relay},bind=127.0.0.1,reuseaddr,fork", f"TCP:127.0.0.1:{self.port}"]
        self.listens(self.start(self.program("socat"), *words, rules="use both server * *:* wait=1000"), relay)
        self.ssh(relay, text, "use sdp client ssh *:*")
        self.check_path(True, 2 * 2 * len(text))

    # --- postgres ---

    def postgres(self, switched):
        """It refuses to run as root: another user has the folder then, and may write the log."""
        self.log.touch()
        for path in (self.folder, self.log) if AS_USER else ():
            shutil.chown(path, "postgres", "postgres")
        data = self.folder / f"data{self.port}"
        words = ["-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "--no-locale", "-E", "UTF8"]
        self.run_program(*AS_USER, POSTGRES / "initdb", *words, switched=False, cwd=self.folder)
        words = ["-D", data, "-p", self.port, "-h", "127.0.0.1", "-k", "", "-c", "fsync=off"]
        server = self.start(*AS_USER, POSTGRES / "postgres", *words, switched=switched, cwd=self.folder)
        self.listens(server)
        # It listens before it is ready.
        ready = [POSTGRES / "pg_isready", "-q", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres"]
        while subprocess.run(ready, check=False, env=self.plain()).returncode != 0:
            self.assertIsNone(server.poll())
            time.sleep(0.05)
        return server

    def psql(self, switched, text, code=0):
        command = [POSTGRES / "psql", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-qAtX", "-c", text]
        return self.run_program(*command, switched=switched, code=code)

    # A child for each connection, which the parent has accepted and closes.
    @unittest.skipUnless(POSTGRES, "postgresql is not installed")
    def test_postgres_and_pgbench(self):
        rows = "".join(f"{i}|{'x' * 200}\n" for i in range(1, 10001))
        for sides in self.each_side():
            server = self.postgres(sides[0])
            bench = [POSTGRES / "pgbench", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "postgres"]
            self.run_program(*bench, "-i", "-q", switched=sides[1])
            output, _ = self.run_program(*bench, "-c", "8", "-j", "2", "-t", "50", "-n", switched=sides[1])
            self.assertIn("actually processed: 400/400", output)
            self.assertIn("failed transactions: 0 ", output)
            self.psql(sides[1], "create table t as select i, repeat('x', 200) from generate_series(1, 10000) i")
            self.assertEqual(self.psql(sides[1], "select * from t"), (rows, ""))
            self.assertIn("does not exist", self.psql(sides[1], "select * from no", code=1)[1])
            self.cancel_one(sides[1])
            self.assertEqual(len(os.listdir(f"/proc/{server.pid}/task")), 1)  # of the one that accepts
            self.end(server)
            self.check_path(all(sides), 2 * len(rows))

    def cancel_one(self, switched):
        """By another connection, which says nothing but that."""
        command = [POSTGRES / "psql", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-X", "-c", "select pg_sleep(100)"]
        sleeper = self.start(*command, switched=switched)
        while self.psql(switched, "select count(*) from pg_stat_activity where query = 'select pg_sleep(100)'")[0] == "0\n":
            self.assertIsNone(sleeper.poll())
        sleeper.send_signal(signal.SIGINT)
        self.assertIn("canceling statement due to user request", self.finish(sleeper, code=1)[1])


ECHO = """
import socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while d := self.request.recv(65536): self.request.sendall(d)
class Server(socketserver.ThreadingTCPServer): allow_reuse_address = True
Server(("127.0.0.1", int(sys.argv[1])), Echo).serve_forever()
"""
TALK = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for line in sys.stdin:
    s.sendall(line.encode()); got = b""
    while len(got) < len(line): got += s.recv(65536)
    assert got.decode() == line; print(len(got))
s.shutdown(socket.SHUT_WR); assert s.recv(1) == b""
"""
HAPROXY = """
global
    maxconn 100
    nbthread 2
    stats socket {folder}/stats level admin expose-fd listeners
defaults
    timeout connect 30s
    timeout client 60s
    timeout server 60s
    option splice-auto
frontend http
    mode http
    bind 127.0.0.1:{port}
    default_backend files
frontend tcp
    mode tcp
    bind 127.0.0.1:{port2}
    default_backend echo
backend files
    mode http
    server files 127.0.0.1:{files}
backend echo
    mode tcp
    server echo 127.0.0.1:{echo}
"""
RSYNCD = """
uid = {uid}
gid = {gid}
use chroot = no
log file = {folder}/rsyncd.log
[files]
    path = {files}
[taken0]
    path = {folder}/taken0
    read only = no
[taken1]
    path = {folder}/taken1
    read only = no
[taken2]
    path = {folder}/taken2
    read only = no
"""
SSHD = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
"""

if __name__ == "__main__":
    unittest.main(verbosity=2)
