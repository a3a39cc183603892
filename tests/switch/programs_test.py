#!/usr/bin/env python3
"""Programs of Debian under the switch: what they print and how they end is as of a plain run, and the bytes go by SDP; each
against itself, and against a plain peer on either side."""

import json
import os
import subprocess
import sys
import unittest

from carried import SIDES, CarriedTest
from support import BOTH

class ProgramsTest(CarriedTest):
    def test_iperf3(self):
        iperf3 = self.program("iperf3")
        for words in (["-P", "4"], ["-R"], ["--bidir"]):
            for sides in SIDES:
                with self.subTest(words=words, sides=sides):
                    self.setUp()
                    server = self.start(iperf3, "-s", "-1", "-p", self.port, "-B", "127.0.0.1", switched=sides[0])
                    self.listens()
                    command = [iperf3, "-c", "127.0.0.1", "-p", self.port, "-n", "20M", "-J", *words]
                    output, _ = self.run_program(*command, switched=sides[1])
                    self.finish(server)
                    end = json.loads(output)["end"]
                    least = 1 if "--bidir" in words else 20 << 20  # the first end of both ends it
                    self.assertGreaterEqual(end["sum_sent"]["bytes"], least)
                    self.assertGreater(end["sum_received"]["bytes"], 0)
                    self.check_path(all(sides), 10 << 20)

    def nginx(self, switched, workers=2):
        folder = self.folder / f"nginx-{self.port}"
        (folder / "html").mkdir(parents=True)
        (folder / "html/large").write_bytes(bytes(range(256)) * 8192)
        user = "user root;" if os.geteuid() == 0 else ""  # who may write the log
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=self.port, workers=workers, user=user))
        command = [self.program("nginx"), "-c", folder / "nginx.conf", "-p", folder, "-e", folder / "error.log"]
        server = self.start(*command, switched=switched)
        self.listens()
        return folder, server

    def end_nginx(self, server):
        server.terminate()
        self.finish(server)

    def test_nginx_and_curl(self):
        curl = self.program("curl")
        for sides in self.each_side():
            folder, server = self.nginx(sides[0])
            url = f"http://127.0.0.1:{self.port}/large"
            got = folder / "got"
            # Twice over one connection, and a part of it.
            words = ["-sS", "-o", got, url, "-o", folder / "again", url, "-w", "%{http_code} %{size_download}\n"]
            output, errors = self.run_program(curl, *words, switched=sides[1])
            self.assertEqual((output, errors), ("200 2097152\n" * 2, ""))
            self.assertEqual(got.read_bytes(), bytes(range(256)) * 8192)
            output, _ = self.run_program(curl, "-sS", "-r", "256-511", "--output", "-", url, switched=sides[1], text=False)
            self.assertEqual(output, bytes(range(256)))
            output, errors = self.run_program(curl, "-sS", f"{url}/no", "-f", code=22, switched=sides[1])
            self.assertIn("404", errors)
            self.end_nginx(server)
            self.check_path(all(sides), 4 << 20)

    # Workers accept and read; the master, which has forked them, has listened.
    def test_each_worker_of_nginx_takes_sdp(self):
        curl = self.program("curl")
        folder, server = self.nginx(True, workers=4)
        url = f"http://127.0.0.1:{self.port}/large"
        clients = [self.start(curl, "-sS", "-o", folder / f"got{i}", url) for i in range(12)]
        for client in clients:
            self.finish(client)
        for i in range(12):
            self.assertEqual((folder / f"got{i}").stat().st_size, 2 << 20)
        self.end_nginx(server)
        self.assertEqual(len([each for each in self.moved("connected") if each.sdp >= 2 << 20]), 12, self.log_text())

    def test_nginx_as_a_proxy_speaks_sdp_on_both_sides(self):
        curl = self.program("curl")
        _, server = self.nginx(True)
        url = f"http://127.0.0.1:{self.port}/proxied/large"
        output, _ = self.run_program(curl, "-sS", "-o", "/dev/null", url, "-w", "%{http_code} %{size_download}\n")
        self.assertEqual(output, "200 2097152\n")
        self.end_nginx(server)
        self.check_path(True, 4 * (2 << 20))

    def test_redis(self):
        benchmark, redis = self.program("redis-benchmark"), self.program("redis-server")
        cli = self.program("redis-cli")
        for sides in self.each_side():
            command = [redis, "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--dir", self.folder]
            server = self.start(*command, "--enable-debug-command", "yes", switched=sides[0])
            self.listens()
            words = ["-p", self.port, "-n", "2000", "-c", "20", "-P", "4", "-t", "set,get", "-d", "3000", "-q", "--csv"]
            output, errors = self.run_program(benchmark, *words, switched=sides[1])
            self.assertEqual(len([line for line in output.splitlines() if line.startswith(('"SET"', '"GET"'))]), 2, errors)
            run = lambda *more: self.run_program(cli, "-p", self.port, *more, switched=sides[1])[0]
            self.assertEqual(run("set", "name", "value"), "OK\n")
            self.assertEqual(run("get", "name"), "value\n")
            self.assertEqual(run("save"), "OK\n")
            self.assertIn("started", run("bgsave"))  # forks
            self.assertEqual(run("get", "name"), "value\n")
            run("shutdown", "nosave")
            self.finish(server)
            self.check_path(all(sides), 2 * 2000 * 3000)

    def test_http_server_of_python_and_its_client(self):
        python = sys.executable
        fetch = (
            "import sys, urllib.request\n"
            "for _ in range(3): print(len(urllib.request.urlopen(sys.argv[1]).read()))\n"
            "try: urllib.request.urlopen(sys.argv[1] + 'no')\n"
            "except urllib.error.HTTPError as e: print(e.code)"
        )
        (self.folder / "large").write_bytes(bytes(1 << 20))
        for sides in self.each_side():
            words = ["-u", "-m", "http.server", self.port, "--bind", "127.0.0.1", "-d", self.folder]
            self.start(python, *words, switched=sides[0])
            self.listens()
            url = f"http://127.0.0.1:{self.port}/large"
            output, _ = self.run_program(python, "-c", fetch, url, switched=sides[1])
            self.assertEqual(output, "1048576\n" * 3 + "404\n")
            self.check_path(all(sides), 3 << 20)

    def test_asyncio_streams_of_python(self):
        server = """
import asyncio, sys
async def serve(r, w):
    while d := await r.read(65536): w.write(d); await w.drain()
    w.close()
async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as s: await s.serve_forever()
asyncio.run(main())
"""
        client = """
import asyncio, sys
async def one(i):
    r, w = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    w.write(bytes([i]) * 300000); w.write_eof(); got = await r.read(); w.close()
    return got == bytes([i]) * 300000
async def main(): print(await asyncio.gather(*(one(i) for i in range(10))))
asyncio.run(main())
"""
        for sides in self.each_side():
            self.start(sys.executable, "-c", server, self.port, switched=sides[0])
            self.listens()
            output, _ = self.run_program(sys.executable, "-c", client, self.port, switched=sides[1])
            self.assertEqual(output, str([True] * 10) + "\n")
            self.check_path(all(sides), 2 * 3_000_000)

    def test_ncat(self):
        ncat = self.program("ncat")
        sent = self.folder / "sent"
        sent.write_bytes(bytes(range(256)) * 4096)
        rules = "use both server * *:* wait=1000;" + BOTH  # it takes EAGAIN for the end
        for sides in self.each_side():
            got = self.folder / "got"
            with open(got, "wb") as output, open(sent, "rb") as source:
                server = self.start(ncat, "-l", "127.0.0.1", self.port, "--recv-only", rules=rules, switched=sides[0], stdout=output)
                self.listens()
                self.run_program(ncat, "--send-only", "127.0.0.1", self.port, switched=sides[1], stdin=source)
                self.finish(server)
            self.assertEqual(got.read_bytes(), sent.read_bytes())
            self.check_path(all(sides), 1 << 20)

    def test_socat_with_a_child_for_each_connection(self):
        socat = self.program("socat")
        for sides in self.each_side():
            listen = f"TCP-LISTEN:{self.port},bind=127.0.0.1,fork,reuseaddr"
            self.start(socat, listen, "EXEC:cat", switched=sides[0])
            self.listens()
            for text in ("first", "second" * 10000):
                client = self.start(
                    socat, "-t5", "STDIO", f"TCP:127.0.0.1:{self.port}", switched=sides[1], stdin=subprocess.PIPE
                )
                output, errors = client.communicate(text, timeout=30)
                self.assertEqual((client.returncode, output, errors), (0, text, ""))
            self.check_path(all(sides), 60000)


NGINX = """
{user}
daemon off;
worker_processes {workers};
pid {folder}/pid;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
    uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
    sendfile on;
    tcp_nopush on;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/html;
        location /proxied/ {{ proxy_pass http://127.0.0.1:{port}/; }}
    }}
}}
"""

if __name__ == "__main__":
    unittest.main(verbosity=2)
