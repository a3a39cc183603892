"""The comparisons of the socket switch: programs that nobody changes, under it and without it.

Nobody is pinned: under the switch a program has threads of ours beside its own. What went by TCP though it ran under the
switch fails the measurement.
"""

import contextlib
import csv
import io
import pathlib
import re
import shutil
import sys
import tempfile

import programs

KIB = 1 << 10
RULES = "use both server * *:* mode={mode}{more};use both client * *:* mode={mode}{more}"
MOVED = re.compile(r"by SDP (\d+) bytes sent, (\d+) received; by TCP (\d+) and (\d+)")
STREAMS = (1, 2, 4, 8)
SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 1024 * KIB)
IDLE = 1000
FREE = (None, None)

# Takes connections and waits for something to come, which nothing does; prints the CPU seconds of that time.
IDLE_SERVER = """
import os, resource, select, socket, sys, time
count, seconds = int(sys.argv[1]), float(sys.argv[2])
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
    print("port", listener.getsockname()[1], flush=True)
    epoll, held = select.epoll(), []
    for _ in range(count):
        held.append(listener.accept()[0])
        held[-1].sendall(held[-1].recv(1))
        epoll.register(held[-1], select.EPOLLIN)
    time.sleep(1)
    before, began = time.process_time(), time.monotonic()
    assert epoll.poll(seconds) == []
    print("busy", (time.process_time() - before) / (time.monotonic() - began), flush=True)
"""
IDLE_CLIENT = """
import resource, socket, sys
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = []
for _ in range(int(sys.argv[2])):
    held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
    held[-1].sendall(b"x")
    held[-1].recv(1)
print("held", flush=True)
held[0].recv(1)
"""


class Switched:
    """Loopback, with both sides under the switch."""

    address = "127.0.0.1"

    def __init__(self, folder, mode, more=""):
        self.log = folder / "log"
        self.log.unlink(missing_ok=True)
        words = {
            "LD_PRELOAD": folder / "libesdp-switch.so",
            "ESDP_SWITCH_CONFIG": "/dev/null",
            "ESDP_SWITCH_RULES": RULES.format(mode=mode, more=more),
            "ESDP_SWITCH_LOG": "1:file:%s" % self.log,
        }
        self.server = self.client = ["env", *("%s=%s" % pair for pair in words.items())]

    def check(self):
        """Both sides say what went by which: nearly nothing by TCP."""
        moved = [[int(number) for number in match.groups()] for match in MOVED.finditer(self.log.read_text())]
        sdp, tcp = (sum(sum(each[at : at + 2]) for each in moved) for at in (0, 2))
        if sdp == 0 or tcp > sdp / 100:
            raise RuntimeError("under the switch %d bytes went by SDP, %d by TCP" % (sdp, tcp))


class SwitchCells:
    """Part of cells.Bench."""

    @contextlib.contextmanager
    def _switch(self):
        """A folder with the two libraries beside each other, as they are installed."""
        with tempfile.TemporaryDirectory(prefix="esdp-bench-") as name:
            folder = pathlib.Path(name)
            folder.chmod(0o755)
            for library in ("shim/libesdp-switch.so", "engine/libesdp-switch-engine.so"):
                shutil.copy(self.folder / "impl/switch" / library, folder)
            yield folder

    def _switched(self):
        with self._switch() as folder:
            rows = []
            for streams in (1, 8):
                for mode, goal in (("direct", 0.8), ("relay", 0.3)):
                    title = "iperf3 -P %d -l 128K, %s / plain" % (streams, mode)
                    ours = lambda: self._iperf3_of(Switched(folder, mode), 128 * KIB, streams)
                    theirs = lambda: self._iperf3_of(None, 128 * KIB, streams)
                    rows.append(self._beside_plain("iperf3", title, ours, theirs, ">=", goal, "B/s"))
            for what, rate, words, key, goal in (
                ("-c 1 -P 1, p50", 4000, ("-c", 1, "-P", 1), "p50", 1.5),
                ("-c 50 -P 1, p50", 40000, ("-c", 50, "-P", 1), "p50", 1.5),
                ("-c 1 -k 0: connect, ask, close", 4000, ("-c", 1, "-k", 0), "each", 2.0),
            ):
                title = "redis-benchmark %s, direct / plain" % what
                ours = lambda: self._redis(Switched(folder, "direct"), rate, key, *words)
                theirs = lambda: self._redis(None, rate, key, *words)
                rows.append(self._beside_plain("redis-benchmark", title, ours, theirs, "<=", goal, "us"))
            title = "CPU of an epoll server with %d idle connections, direct" % IDLE
            rows.append(self._alone(title, lambda: self._idle(Switched(folder, "direct")), "<=", 0.001, "s/s"))
            return rows

    def _switched_sizes(self):
        """The figure of the paper on zero-copy SDP, of an iperf3 that nobody changed."""
        with self._switch() as folder:
            rows = []
            for streams in STREAMS:
                for size in SIZES:
                    theirs = lambda: self._iperf3_of(None, size, streams)
                    for way, more in (("BCopy", " zcopy=never"), ("ZCopy", " zcopy=%d" % (4 * KIB))):
                        title = "iperf3 -P %d -l %dK, %s / plain" % (streams, size // KIB, way)
                        ours = lambda: self._iperf3_of(Switched(folder, "direct", more), size, streams)
                        row = self._beside_plain("iperf3", title, ours, theirs, ">=", None, "B/s")
                        rows.append({**row, "series": way, "streams": streams, "x": size})
            return rows

    def _beside_plain(self, program, title, ours, theirs, relation, goal, unit):
        if not shutil.which(program):
            return {"what": title, "missing": [program]}
        return self._pairs(title, ours, theirs, relation, goal, unit)

    def _iperf3_of(self, switched, size, streams):
        where = switched or programs.Loopback
        result = programs.iperf3(self.options.seconds, size, self.congestion, FREE, where, streams=streams)
        if switched:
            switched.check()
        return result

    def _redis(self, switched, rate, key, *words):
        """Microseconds, with about so many requests a second: the median of a request, or of what each takes with all that belongs to it."""
        where = switched or programs.Loopback
        with programs.free_port() as port:
            words_of_server = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
            server = programs.Program(words_of_server, inside=where.server)
            programs.await_listener(port, server.process.pid)
        try:
            count = max(100, round(rate * self.options.seconds))
            command = ["redis-benchmark", "-h", "127.0.0.1", "-p", port, "-n", count, "-t", "set", "--csv", *words]
            client = programs.Program(command, inside=where.client)
            output, _ = client.finish(10 * self.options.seconds)
        finally:
            server.process.terminate()
            server.finish(0)
        if switched:
            switched.check()
        row = next(csv.DictReader(io.StringIO(output[output.index('"test"') :])))
        return {"value": 1e6 / float(row["rps"]) if key == "each" else 1000 * float(row["p50_latency_ms"])}

    def _idle(self, switched):
        """CPU seconds a second."""
        command = [sys.executable, "-c", IDLE_SERVER, IDLE, max(1.0, self.options.seconds)]
        server = programs.Program(command, inside=switched.server)
        port = server.await_line(r"port (\d+)").group(1)
        client = programs.Program([sys.executable, "-c", IDLE_CLIENT, port, IDLE], inside=switched.client)
        client.await_line("held")
        busy = float(server.await_line(r"busy (\S+)").group(1))
        server.finish(0)
        client.finish(0)
        switched.check()
        return {"value": busy, "cpu": busy}
