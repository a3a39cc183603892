"""The comparisons of esdp_serve: beside nginx and its clients, its clients beside each other, and esdp_copy.

Each peer that is missing is named in the row that wants it.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import tempfile
import time

import programs
from file_cells import fill

KIB, MIB = 1 << 10, 1 << 20
SIZES = (4 * KIB, 64 * KIB, MIB, 64 * MIB)  # and --file-mib
SLOW = 1_000_000  # bytes a second that a slow client takes
CLIENTS = 8
GUESS = 2e9  # bytes a second: what curl is asked for takes about the seconds that it is to take

NGINX = """
daemon off;
pid {folder}/nginx.pid;
worker_processes {workers};
{user}
events {{ worker_connections 1024; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  open_file_cache max=1024;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    root {root};
  }}
}}
"""


class ServingCells:
    """Part of cells.Bench. Nobody is pinned: both servers and some of the clients have several threads."""

    def _serving(self):
        with tempfile.TemporaryDirectory(prefix="esdp-bench-") as folder:
            self.root = pathlib.Path(folder)
            self.root.chmod(0o755)
            whole = self.options.file_mib * MIB
            sizes = sorted({min(size, whole) for size in (*SIZES, whole)})
            for size in sizes:
                fill(self.root / str(size), size)
            rows = [row for size in sizes for row in self._one_client(size, size == whole)]
            rows += self._many_small()
            rows += self._fair()
            rows.append(self._copied(whole))
            return rows

    # --- beside nginx ---

    def _one_client(self, size, whole):
        client = "curl" if size >= MIB else "wrk"
        title = "%s, 1 client / nginx, %s" % (_text(size), client)
        theirs = (lambda: self._curl(size)) if client == "curl" else (lambda: self._wrk(size, 1, 1, "bytes"))
        ours = lambda: self._load(size, 1, "bytes")
        rows = self._beside_nginx(client, title, ours, theirs, 1.3 if whole else None, "B/s", 0.8 if whole else None)
        rows[0].update(series="sizes", x=size)
        return rows

    def _many_small(self):
        rows = []
        for workers, connections in ((1, 1), (1, 8), (1, 64), (2, 64)):
            size = 4 * KIB
            title = "%s, clients: %d / nginx, workers: %d, wrk" % (_text(size), connections, workers)
            ours = lambda: self._load(size, connections, "files")
            theirs = lambda: self._wrk(size, connections, workers, "files")
            row = self._beside_nginx("wrk", title, ours, theirs, 1.0 if connections == 64 else None, "files/s")[0]
            row.update(series="connections" if workers == 1 else "", x=connections)
            rows.append(row)
        return rows

    def _beside_nginx(self, client, title, ours, theirs, goal, unit, cpu_goal=None):
        missing = [name for name in ("nginx", client) if not where(name)]
        if missing:
            return [{"what": title, "missing": missing}]
        kept, thrown = self._paired(ours, theirs)
        rows = [self._row_of(title, kept, thrown, ">=", goal, unit)]
        if cpu_goal is not None:
            rows.append(self._row_of("CPU: " + title, kept, thrown, "<=", cpu_goal, "s/GB", key="cpu"))
        return rows

    # --- several clients ---

    def _fair(self):
        size = min(64, self.options.file_mib) * MIB

        def jain():
            result = self._load(size, CLIENTS, "bytes")
            each = result["each"]
            return {"value": sum(each) ** 2 / (len(each) * sum(one * one for one in each)), "cpu": result["cpu"]}

        rows = [self._alone("%d clients of %s, Jain's index" % (CLIENTS, _text(size)), jain, ">=", 0.99, "ratio")]

        def others(*slow):
            result = self._load(size, CLIENTS - 1, "bytes", *slow)
            moved = sum(result["each"][: CLIENTS - 1])
            return {"value": moved, "cpu": result["cpu"]}

        title = "%d clients beside one at 1 MB/s / without it" % (CLIENTS - 1)
        rows.append(self._pairs(title, lambda: others(SLOW), others, ">=", 0.98, "B/s"))
        return rows

    # --- copied and summed ---

    def _copied(self, size):
        """What the sums cost: both write a file at the other end."""
        source, target = self.root / str(size), self.root / "target"

        def ours():
            return self._copy(
                [self.folder / "tools/esdp_serve/esdp_serve", self.root, "--listen", "127.0.0.1:0"],
                lambda address: [self.folder / "tools/esdp_get/esdp_get", "get", address, source.name, "--crc", "--quiet", "--to", target],
                size,
            )

        def theirs():
            return self._copy(
                [self.folder / "tools/esdp_copy/esdp_copy", "--serve", target, "--sessions", "1"],
                lambda address: [self.folder / "tools/esdp_copy/esdp_copy", source, address, "--quiet"],
                size,
                ends_itself=True,
            )

        title = "CPU: esdp_get --crc / esdp_copy (SHA-256), %s" % _text(size)
        kept, thrown = self._paired(ours, theirs)
        return self._row_of(title, kept, thrown, "<=", 0.5, "s/GB", key="cpu")

    def _copy(self, server_command, client_command, size, ends_itself=False):
        target = self.root / "target"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        with _server(programs.Program(server_command), r"listening on (\S+)", ends_itself) as server:
            began = time.monotonic()
            _, cpu = programs.Program(client_command(server.address)).finish(self.options.seconds)
            seconds = time.monotonic() - began
        shutil.rmtree(target)
        return {"value": size / seconds, "cpu": (cpu + server.cpu) / (size / 1e9)}

    # --- the programs ---

    def _load(self, size, connections, what, *more):
        command = [self.folder / "tools/esdp_serve/esdp_serve", self.root, "--listen", "127.0.0.1:0"]
        with _server(programs.Program(command), r"listening on (\S+)") as server:
            words = [server.address, size, connections, self.options.seconds, *more]
            output, cpu = programs.Program([self.folder / "tests/bench/serve_load", *words]).finish(self.options.seconds)
        result = json.loads(output)
        gigabytes = max(result["bytes"], 1) / 1e9
        result["cpu"] = (cpu + server.cpu) / gigabytes
        result["value"] = result["files_per_second" if what == "files" else "bytes_per_second"]
        result["p99_us"] = result["last_us"]["p99"]
        return result

    @contextlib.contextmanager
    def _nginx(self, workers=1):
        with tempfile.TemporaryDirectory(prefix="esdp-nginx-") as folder, programs.free_port() as port:
            user = "user root;" if os.geteuid() == 0 else ""
            text = NGINX.format(folder=folder, workers=workers, user=user, port=port, root=self.root)
            pathlib.Path(folder, "conf").write_text(text, encoding="utf-8")
            command = [where("nginx"), "-p", folder, "-c", folder + "/conf", "-e", folder + "/log"]
            server = programs.Program(command)
            programs.await_listener(port, server.process.pid)
            with _server(server, None) as served:
                served.address = "http://127.0.0.1:%d" % port
                yield served

    def _curl(self, size):
        count = max(1, round(self.options.seconds * GUESS / size))
        with self._nginx() as server:
            url = "%s/%d?[1-%d]" % (server.address, size, count)
            command = ["curl", "-s", "-f", "-o", "/dev/null", "-w", "%{size_download} %{time_total}\\n", url]
            output, cpu = programs.Program(command).finish(self.options.seconds)
        moved = [line.split() for line in output.splitlines()]
        length = sum(int(words[0]) for words in moved)
        assert length == count * size, output[-200:]
        return {"value": length / sum(float(words[1]) for words in moved), "cpu": (cpu + server.cpu) / (length / 1e9)}

    def _wrk(self, size, connections, workers, what):
        with self._nginx(workers) as server:
            seconds = max(1, round(self.options.seconds))  # it knows whole seconds
            command = ["wrk", "-t1", "-c%d" % connections, "-d%ds" % seconds, "--latency", "%s/%d" % (server.address, size)]
            output, cpu = programs.Program(command).finish(seconds)
        count, rate, p99_us = wrk_figures(output)
        return {
            "value": rate if what == "files" else rate * size,
            "cpu": (cpu + server.cpu) / (count * size / 1e9),
            "p99_us": p99_us,
        }


def wrk_figures(output):
    """What wrk printed: the requests that it made, how many a second, and the 99th percentile of their latency in us."""
    assert "Non-2xx" not in output, output
    count = int(re.search(r"^\s*(\d+) requests in", output, re.MULTILINE).group(1))
    assert count > 0, "no request ended: " + output
    rate = float(re.search(r"^Requests/sec:\s+([0-9.]+)", output, re.MULTILINE).group(1))
    # A line of its own: the line before it may end with such a share of requests, too.
    p99 = re.search(r"^\s*99%\s+(\S+)$", output, re.MULTILINE).group(1)
    return count, rate, _microseconds(p99)


class _Served:
    address, cpu = "", 0.0


@contextlib.contextmanager
def _server(program, pattern, ends_itself=False):
    """A server that is running; its CPU seconds when it has ended, by itself or told to."""
    served = _Served()
    if pattern is not None:
        served.address = program.await_line(pattern).group(1)
    try:
        yield served
    finally:
        if not ends_itself:
            program.process.terminate()
        _, served.cpu = program.finish(10)


def where(name):
    """Servers are where users do not look for programs."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def _microseconds(text):
    """Of what wrk says: 1.23ms."""
    number, unit = re.fullmatch(r"([0-9.]+)(us|ms|s|m)", text).groups()
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6, "m": 6e7}[unit]


def _text(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return "%d %s" % (size // unit, name)
    return "%d B" % size

