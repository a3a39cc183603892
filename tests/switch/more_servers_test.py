#!/usr/bin/env python3
"""More servers of Debian under the switch, as servers_test.py has it: locks around accept, pools of threads, data connections
that the server opens or takes by itself, a server that speaks first to a thread that waits, and a tunnel of TLS."""

import filecmp
import os
import pathlib
import shutil
import subprocess
import unittest

from carried import CarriedTest
from support import BOTH

BOTH_SPEAK = "use both server * *:* wait=1000;" + BOTH
LARGE = 3 << 20
ROOT = os.geteuid() == 0
MARIADB = pathlib.Path("/usr/sbin/mariadbd")


class MoreServersTest(CarriedTest):
    def large_file(self):
        path = self.folder / "html/large"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(range(128, 256)) * (LARGE // 128))
        return path

    def end(self, server):
        server.terminate()
        server.communicate(timeout=60)

    def open_to_all(self):
        """A server that gives up its rights still reads the files, and writes the log."""
        for each in (self.folder, self.folder / "html"):
            each.chmod(0o755)
        self.log.touch()
        self.log.chmod(0o666)

    def configured(self, name, text, **more):
        """A file for the server, whose folder is its own for each port."""
        self.own = self.folder / f"{name}-{self.port}"
        self.own.mkdir()
        path = self.own / "conf"
        path.write_text(text.format(own=self.own, port=self.port, html=self.folder / "html", **more))
        return path

    def fetch_by_curl(self, switched, *words):
        """A file twice over one connection, a part of it, and what is not there."""
        curl, large = self.program("curl"), self.large_file()
        url, got = f"http://127.0.0.1:{self.port}/large", self.own / "got"
        many = ["-o", got, url, "-o", self.own / "again", url, "-w", "%{http_code} %{size_download}\n"]
        answers = self.run_program(curl, "-sS", *words, *many, switched=switched)
        self.assertEqual(answers, (f"200 {LARGE}\n" * 2, ""))
        self.assertTrue(filecmp.cmp(got, large, shallow=False))
        self.run_program(curl, "-sS", *words, "-r", "128-255", "-o", got, url, switched=switched)
        self.assertEqual(got.read_bytes(), bytes(range(128, 256)))
        missing = f"http://127.0.0.1:{self.port}/no"
        self.assertIn("404", self.run_program(curl, "-sSf", *words, missing, code=22, switched=switched)[1])

    # --- apache ---

    def apache(self, module):
        for sides in self.each_side():
            self.large_file()
            user = "User www-data\nGroup www-data" if ROOT else ""
            path = self.configured("apache", HTTPD, module=module, user=user)
            self.open_to_all()
            server = self.start(self.program("apache2"), "-DFOREGROUND", "-f", path, switched=sides[0])
            self.listens(server)
            self.fetch_by_curl(sides[1])
            self.end(server)
            self.check_path(all(sides), 4 * LARGE)

    def test_apache_with_threads_that_share_an_epoll(self):
        self.apache("event")

    def test_apache_with_a_process_for_each_connection(self):
        self.apache("prefork")

    # --- lighttpd ---

    def test_lighttpd(self):
        for sides in self.each_side():
            path = self.configured("lighttpd", LIGHTTPD)
            server = self.start(self.program("lighttpd"), "-D", "-f", path, switched=sides[0])
            self.listens(server)
            self.fetch_by_curl(sides[1])
            self.end(server)
            self.check_path(all(sides), 4 * LARGE)

    # --- squid ---

    def test_squid_between_a_client_and_a_server(self):
        for sides in self.each_side():
            origin = self.port
            self.listens(self.start(self.program("lighttpd"), "-D", "-f", self.configured("lighttpd", LIGHTTPD), switched=sides[1]))
            self.port = self.fresh_port()
            self.large_file()
            path = self.configured("squid", SQUID)
            self.open_to_all()
            proxy = self.start(self.program("squid"), "-N", "-n", f"test{self.port}", "-f", path, switched=sides[0])
            self.listens(proxy)
            proxied, self.port = self.port, origin
            self.fetch_by_curl(sides[1], "-x", f"http://127.0.0.1:{proxied}")
            self.end(proxy)
            self.check_path(all(sides), 4 * LARGE)

    # --- vsftpd ---

    # Data connections, to a port that the server listens on for it and from the server to the client, go by SDP. The others,
    # on which commands go, are of processes with no memory to spare: these cost a connect, and go by TCP.
    @unittest.skipUnless(ROOT, "vsftpd needs root")
    def test_vsftpd_with_lftp_and_curl(self):
        curl = self.program("curl")
        for sides in self.each_side():
            large = self.large_file()
            self.open_to_all()
            path = self.configured("vsftpd", VSFTPD)
            os.makedirs("/var/run/vsftpd/empty", exist_ok=True)
            server = self.start(self.program("vsftpd"), path, switched=sides[0], rules=BOTH_SPEAK)
            self.listens(server)
            url = f"ftp://127.0.0.1:{self.port}"
            for words in ([], ["--ftp-port", "127.0.0.1"]):
                got = self.own / "got"
                self.assertEqual(self.run_program(curl, "-sS", *words, "-o", got, f"{url}/large", switched=sides[1]), ("", ""))
                self.assertTrue(filecmp.cmp(got, large, shallow=False))
            script = f"set net:timeout 20; set net:max-retries 1; cls -1; get large -o {self.own}/lftp; bye"
            output, _ = self.run_program(self.program("lftp"), "-e", script, url, switched=sides[1])
            self.assertEqual(output, "large\n")
            self.assertTrue(filecmp.cmp(self.own / "lftp", large, shallow=False))
            self.end(server)
            carried = sum(each.sdp for each in self.moved())
            self.assertGreaterEqual(carried, 2 * LARGE if all(sides) else 0, self.log_text())

    # --- stunnel ---

    def test_stunnel_before_a_server(self):
        certificate = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-subj", "/CN=localhost"]
        certificate += ["-keyout", self.folder / "key", "-out", self.folder / "cert"]
        self.run_program(self.program("openssl"), *certificate, switched=False)
        for sides in self.each_side():
            large = self.large_file()
            origin = self.port
            self.listens(self.start(self.program("lighttpd"), "-D", "-f", self.configured("lighttpd", LIGHTTPD), switched=sides[1]))
            self.port = self.fresh_port()
            path = self.configured("stunnel", STUNNEL, origin=origin, folder=self.folder)
            tunnel = self.start(self.program("stunnel4"), path, switched=sides[0])
            self.listens(tunnel)
            got, url = self.own / "got", f"https://127.0.0.1:{self.port}/large"
            self.assertEqual(self.run_program(self.program("curl"), "-sSk", "-o", got, url, switched=sides[1]), ("", ""))
            self.assertTrue(filecmp.cmp(got, large, shallow=False))
            self.end(tunnel)
            self.check_path(all(sides), 4 * LARGE)

    # --- mariadb ---

    def new_database(self, user):
        """Made once for all tests."""
        data = self.folder / "new"
        if not data.exists():
            words = ["--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", *user]
            self.run_program(self.program("mariadb-install-db"), *words, "--skip-test-db", switched=False)
        return data

    # The thread that listens hands each connection to another one, which speaks first.
    @unittest.skipUnless(MARIADB.exists(), "mariadb-server is not installed")
    def test_mariadb(self):
        rows = "".join(f"{i}\t{'x' * 200}\n" for i in range(1, 5001))
        user = ["--user=mysql"] if ROOT else []
        for sides in self.each_side():
            self.log.touch()
            for path in (self.folder, self.log) if ROOT else ():
                shutil.chown(path, "mysql", "mysql")
            data = self.folder / f"data{self.port}"
            self.run_program("cp", "-a", self.new_database(user), data, switched=False)
            words = ["--no-defaults", f"--datadir={data}", f"--socket={data}/socket", "--bind-address=127.0.0.1"]
            words += ["--skip-name-resolve", "--skip-grant-tables", "--skip-networking=0", f"--port={self.port}", *user]
            server = self.start(MARIADB, *words, switched=sides[0], rules=BOTH_SPEAK)
            self.listens(server)
            command = [self.program("mariadb"), "--no-defaults", "-h", "127.0.0.1", "-P", self.port, "--skip-ssl", "-N", "-B", "-e"]
            fill = "create database d; use d; create table t as select seq, repeat('x', 200) from seq_1_to_5000"
            self.run_program(*command, fill, switched=sides[1])
            self.assertEqual(self.run_program(*command, "select * from d.t order by seq", switched=sides[1]), (rows, ""))
            self.assertIn("doesn't exist", self.run_program(*command, "select * from d.no", code=1, switched=sides[1])[1])
            self.end(server)
            self.check_path(all(sides), 2 * len(rows))


HTTPD = """
ServerRoot {own}
Listen 127.0.0.1:{port}
ServerName localhost
LoadModule mpm_{module}_module /usr/lib/apache2/modules/mod_mpm_{module}.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
{user}
PidFile {own}/pid
ErrorLog {own}/error.log
DefaultRuntimeDir {own}
DocumentRoot {html}
EnableSendfile On
"""
LIGHTTPD = """
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{html}"
server.errorlog = "{own}/error.log"
server.upload-dirs = ( "{own}" )
"""
SQUID = """
http_port 127.0.0.1:{port}
http_access allow all
cache deny all
pid_filename none
access_log none
cache_log /dev/null
coredump_dir none
pinger_enable off
shutdown_lifetime 0 seconds
"""
VSFTPD = """
listen=YES
listen_address=127.0.0.1
listen_port={port}
background=NO
anonymous_enable=YES
no_anon_password=YES
anon_root={html}
run_as_launching_user=NO
nopriv_user=nobody
connect_from_port_20=NO
seccomp_sandbox=NO
isolate=NO
isolate_network=NO
port_promiscuous=YES
pasv_promiscuous=YES
"""
STUNNEL = """
foreground = yes
pid =
[one]
accept = 127.0.0.1:{port}
connect = 127.0.0.1:{origin}
cert = {folder}/cert
key = {folder}/key
"""

if __name__ == "__main__":
    unittest.main(verbosity=2)
