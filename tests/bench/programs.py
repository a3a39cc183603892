"""Starts the programs that are compared, pinned, and reads what they print and the CPU they used."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 120.0  # seconds that a program may take beyond its measuring time


def build(targets):
    """Builds with optimisation, as quickstart does, and gives the folder of the programs."""
    bazel = ". impl/bazel/bazel.sh && esdp_bazel "
    subprocess.run(["bash", "-c", bazel + 'build --config=opt "$@"', "bash", *targets], cwd=ROOT, check=True)
    info = ["bash", "-c", bazel + "info --config=opt bazel-bin 2>/dev/null"]
    return pathlib.Path(subprocess.run(info, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip())


class Program:
    """One process. finish() gives its output and the CPU seconds that it used."""

    def __init__(self, command, cpu=None, inside=()):
        """`inside`: words before the command that take it to a network namespace."""
        prefix = list(inside) + (["taskset", "-c", str(cpu)] if cpu is not None else [])
        self.command = [str(word) for word in command]
        self.process = subprocess.Popen(prefix + self.command, stdout=subprocess.PIPE, bufsize=0)

    def await_line(self, pattern):
        """Reads lines until one matches, and gives the match."""
        for line in iter(self.process.stdout.readline, b""):
            match = re.search(pattern, line.decode())
            if match:
                return match
        raise RuntimeError("%s ended without printing %s" % (" ".join(self.command), pattern))

    def finish(self, seconds):
        give_up = time.monotonic() + seconds + LIMIT
        output = b""
        os.set_blocking(self.process.stdout.fileno(), False)
        while True:
            output += self._read()
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > give_up:
                self.process.kill()
                raise RuntimeError("%s took too long" % " ".join(self.command))
            time.sleep(0.01)
        output = (output + self._read()).decode()
        self.process.stdout.close()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode != 0:
            raise RuntimeError("%s failed:\n%s" % (" ".join(self.command), output))
        return output, usage.ru_utime + usage.ru_stime

    def _read(self):
        """All that is there now."""
        pieces = []
        while True:
            try:
                piece = os.read(self.process.stdout.fileno(), 65536)
            except BlockingIOError:
                piece = b""
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)


class Loopback:
    """Where the two sides of a measurement are: here."""

    server, client, address = (), (), "127.0.0.1"


class LongPath:
    """Two network namespaces, and so many milliseconds from one to the other and back. They go with it."""

    address = "10.9.0.1"

    def __init__(self, binary, round_trip):
        self.program = Program([binary, round(round_trip * 500)])
        paths = self.program.await_line(r"namespaces (\S+) (\S+)").groups()
        self.server, self.client = (["nsenter", "--net=" + path] for path in paths)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.process.terminate()
        self.program.process.wait()
        self.program.process.stdout.close()

    def cpu(self):
        """CPU seconds that the path itself has used so far."""
        fields = pathlib.Path("/proc/%d/stat" % self.program.process.pid).read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def why_no_long_path():
    """What is missing for one, or nothing."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if not os.path.exists("/dev/net/tun"):
        return "the system has no /dev/net/tun"
    return None if shutil.which("nsenter") else "nsenter is not installed"


def iperf3(seconds, size, congestion, cpus, where=Loopback, warm_up=0, streams=1):
    """Streams of TCP: bytes a second as the receiver saw them, CPU seconds a GB of both sides."""
    with free_port() as port:
        server = Program(["iperf3", "-s", "-1", "-p", port], cpus[0], where.server)
        await_listener(port, server.process.pid)
    whole = max(1, round(seconds))  # iperf3 knows whole seconds, and 0 is for ever
    command = ["iperf3", "-c", where.address, "-p", port, "-l", size, "-t", whole, "-O", warm_up, "-P", streams]
    command += ["-C", congestion, "-J"]
    client = Program(command, cpus[1], where.client)
    output, client_cpu = client.finish(seconds + warm_up)
    _, server_cpu = server.finish(0)
    result = json.loads(output)
    received = result["end"]["sum_received"]
    # What it left out took CPU seconds too.
    left_out = sum(interval["sum"]["bytes"] for interval in result["intervals"] if interval["sum"]["omitted"])
    gigabytes = (received["bytes"] + left_out) / 1e9
    return {"value": received["bits_per_second"] / 8, "cpu": (client_cpu + server_cpu) / gigabytes}


def esdp_perf(binary, seconds, options, cpus, where=Loopback, warm_up=0, fabric="qpip"):
    """What esdp_perf measures, as its JSON says."""
    words = ["--server", "--sessions", "1", "--listen", where.address, "--fabric", fabric]
    server = Program([binary, *words], cpus[0], where.server)
    port = server.await_line(r"port (\d+)").group(1)
    client = Program(
        [binary, "--connect", where.address, "--port", port, "--seconds", seconds, "--warm-up", warm_up]
        + ["--json", "--quiet", "--fabric", fabric]
        + options,
        cpus[1],
        where.client,
    )
    output, _ = client.finish(seconds + warm_up)
    server.finish(0)
    return json.loads(output)


def tcp_ping_pong(binary, seconds, size, congestion, cpus):
    (result, _), _ = _plain_tcp(binary, seconds, [size], congestion, cpus)
    return result


def tcp_places(binary, seconds, size, places, congestion, cpus):
    """One stream of TCP out of several places and into as many: as iperf3."""
    (_, client_cpu), (received, server_cpu) = _plain_tcp(binary, seconds, [size, places], congestion, cpus)
    return {"value": received["bytes"] / received["seconds"], "cpu": (client_cpu + server_cpu) / (received["bytes"] / 1e9)}


def _plain_tcp(binary, seconds, what, congestion, cpus):
    """What the client and the server printed at their end, and their CPU seconds."""
    server = Program([binary, "server", cpus[0] if cpus[0] is not None else 0, *what])
    port = server.await_line(r"port (\d+)").group(1)
    client = Program([binary, "client", cpus[1] if cpus[1] is not None else 1, *what, port, seconds, congestion])
    results = []
    for program, length in ((client, seconds), (server, 0)):
        output, cpu = program.finish(length)
        results.append((json.loads(output or "null"), cpu))
    return results


@contextlib.contextmanager
def free_port():
    """Nobody else is given it meanwhile, on whichever address; who sets SO_REUSEADDR, as iperf3 does, can listen there."""
    dual = socket.has_dualstack_ipv6()
    with socket.socket(socket.AF_INET6 if dual else socket.AF_INET) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dual:
            taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        taken.bind(("", 0))
        yield taken.getsockname()[1]


def await_listener(port, pid):
    """Waits until somebody listens where that process is, as the kernel's table says: a trial connection would use up
    the server's one."""
    give_up = time.monotonic() + LIMIT
    while time.monotonic() < give_up:
        for table in ("tcp", "tcp6"):
            for line in pathlib.Path("/proc/%d/net/%s" % (pid, table)).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(":%04X" % port) and fields[3] == "0A":
                    return
        time.sleep(0.01)
    raise RuntimeError("nobody listens on port %d" % port)
