#!/usr/bin/env python3
"""What lives longer than a connection, under the switch: servers that are reloaded or killed and come again, with the switch and
without it, clients that are killed, and a copy that follows another server."""

import signal
import subprocess
import time
import unittest

from carried import CarriedTest

# Asks for the same page on a connection of its own each time, until it is told to stop; prints how often, and what went wrong.
ASKER = """
import http.client, select, sys
count, wrong = 0, []
while not select.select([sys.stdin], [], [], 0)[0]:
    c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
    try:
        c.request("GET", "/page", headers={"Connection": "close"})
        answer = c.getresponse()
        if (answer.status, answer.read()) != (200, b"page" * 5000): wrong.append(answer.status)
    except Exception as error: wrong.append(repr(error))
    c.close()
    count += 1
print(count, wrong)
"""
# A client that connects again whenever it has lost its server; prints an answer for each line it is told.
LASTING = """
import socket, sys, time
s = None
for line in sys.stdin:
    until = time.monotonic() + 20
    while True:
        try:
            if s is None: s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20)
            s.sendall(b"PING\\r\\n")
            got = s.recv(100)
            if not got: raise ConnectionError("the end")
            print(got.decode().strip()); break
        except OSError:
            if time.monotonic() > until: raise
            s = None; time.sleep(0.05)
"""


class RestartsTest(CarriedTest):
    def nginx(self):
        folder = self.folder / f"nginx-{self.port}"
        (folder / "html").mkdir(parents=True)
        (folder / "html/page").write_bytes(b"page" * 5000)
        (folder / "conf").write_text(NGINX.format(folder=folder, port=self.port))
        command = [self.program("nginx"), "-c", folder / "conf", "-p", folder, "-e", folder / "error.log"]
        server = self.start(*command)
        self.listens(server)
        return server

    # Old workers end as their last connection does, and new ones take the listener.
    def test_nginx_is_reloaded_under_load_and_no_request_is_lost(self):
        server = self.nginx()
        askers = [self.start_python(ASKER, self.port, stdin=subprocess.PIPE) for _ in range(3)]
        for _ in range(3):
            time.sleep(0.5)
            server.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        for asker in askers:
            output, errors = asker.communicate("stop\n", timeout=60)
            count, wrong = output.split(" ", 1)
            self.assertEqual((wrong, errors), ("[]\n", ""))
            self.assertGreater(int(count), 3)
        self.end(server)
        self.check_path(True, 3 * 3 * 20000)

    def redis(self, *more, switched=True, port=None):
        words = ["--port", port or self.port, "--bind", "127.0.0.1", "--save", "", "--dir", self.folder, "--repl-diskless-sync-delay", "0"]
        server = self.start(self.program("redis-server"), *words, "--enable-debug-command", "yes", *more, switched=switched)
        self.listens(server, port)
        return server

    def cli(self, port, *words):
        return self.run_program(self.program("redis-cli"), "-p", port, *words)[0]

    def end(self, server):
        server.terminate()
        server.communicate(timeout=60)

    # The copy begins with what a child of the server sends, and goes on with what the server itself does.
    def test_redis_saves_and_is_followed_by_a_copy_under_load(self):
        other = self.fresh_port()
        server = self.redis()
        self.redis("--replicaof", f"127.0.0.1 {self.port}", "--dbfilename", "copy.rdb", port=other)
        words = ["-p", self.port, "-n", "6000", "-c", "10", "-t", "set", "-r", "1000", "-d", "500", "-q"]
        load = self.start(self.program("redis-benchmark"), *words)
        while "Background saving" not in self.cli(self.port, "bgsave"):  # after that of the copy
            self.assertIsNone(server.poll())
        self.finish(load)
        until = time.monotonic() + 30
        while self.cli(self.port, "debug", "digest") != self.cli(other, "debug", "digest"):
            self.assertLess(time.monotonic(), until, self.cli(other, "info", "replication"))
            time.sleep(0.1)
        self.assertIn("master_link_status:up", self.cli(other, "info", "replication"))
        self.assertIn("rdb_last_bgsave_status:ok", self.cli(self.port, "info", "persistence"))
        self.end(server)
        self.check_path(True, 6000 * 500)

    def ask(self, client):
        client.stdin.write("ask\n")
        client.stdin.flush()
        self.assertEqual(client.stdout.readline(), "+PONG\n", self.log_text())

    def test_a_server_that_is_killed_is_reached_again_with_the_switch_and_without(self):
        client = None
        for switched in (True, True, False, True):
            server = self.redis(switched=switched)
            if client is None:
                client = self.start_python(LASTING, self.port, stdin=subprocess.PIPE)
            for _ in range(3):
                self.ask(client)
            server.kill()
            server.communicate()
        self.finish(client)
        self.assertGreaterEqual(len([each for each in self.moved("connected") if each.sdp > 0]), 2, self.log_text())

    def test_a_client_that_is_killed_leaves_nothing_at_its_server(self):
        self.redis()
        clients = [self.start_python(LASTING, self.port, stdin=subprocess.PIPE) for _ in range(5)]
        for client in clients:
            self.ask(client)
        for client in clients[1:]:
            client.kill()
        until = time.monotonic() + 30
        while self.cli(self.port, "client", "list").count("\n") != 2:  # with the one that asks
            self.assertLess(time.monotonic(), until, self.cli(self.port, "client", "list"))
            time.sleep(0.05)
        self.ask(clients[0])


NGINX = """
daemon off;
user root;
worker_processes 4;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  server {{ listen 127.0.0.1:{port}; root {folder}/html; }}
}}
"""

if __name__ == "__main__":
    unittest.main(verbosity=2)
