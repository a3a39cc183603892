"""Starts the peers of other projects and the raw limits, and reads what they print: one function for each program."""

import json
import re
import shutil
import signal
import subprocess

import programs

MIB = 1 << 20
# The program that a peer is, Debian's package, and the command that tells the version.
PEERS = {
    "iperf3": ("iperf3", "iperf3 --version"),
    "iperf": ("iperf", "iperf --version"),
    "sockperf": ("sockperf", "sockperf --version"),
    "ucx_perftest": ("ucx-utils", "ucx_info -v"),
    "fi_pingpong": ("libfabric-bin", "fi_info --version"),
}


class Missing(Exception):
    """A peer that this machine does not have, or a figure for which there is no program yet."""


def require(name):
    if not shutil.which(name):
        raise Missing("%s is not installed: apt-get install %s" % (name, PEERS[name][0]))


def versions():
    """Of each peer: its version, or that it is missing."""
    found = {}
    for name, (package, command) in PEERS.items():
        found[name] = "missing (Debian: %s)" % package
        if shutil.which(name):
            result = subprocess.run(command.split(), capture_output=True, text=True, check=False)
            version = re.search(r"\d+\.\d+(\.\d+)?", result.stdout + result.stderr)
            found[name] = version.group() if version else "of unknown version"
    return found


def figure(pattern, output, what):
    """The number that the pattern finds; a program that prints something else is an error and not a zero."""
    match = re.search(pattern, output, re.MULTILINE)
    if not match or float(match.group(1)) <= 0:
        raise RuntimeError("%s printed no figure:\n%s" % (what, output))
    return float(match.group(1))


def ucx(seconds, transports, test, size, expected, cpus):
    """`expected`: operations a second, about; ucx_perftest wants their number and not the time. Its MB are MiB."""
    require("ucx_perftest")
    with programs.free_port() as port:
        pass
    environment = ["env", "UCX_TLS=%s,self" % transports]
    count = max(100, round(seconds * expected))
    words = ["ucx_perftest", "-p", port, "-t", test, "-s", size, "-n", count, "-w", max(10, count // 20), "-f", "-v"]
    server = programs.Program(environment + ["ucx_perftest", "-p", port], cpus[0])
    programs.await_listener(port, server.process.pid)
    client = programs.Program(environment + words[:1] + ["127.0.0.1"] + words[1:], cpus[1])
    output, client_cpu = client.finish(seconds)
    _, server_cpu = server.finish(seconds)
    return ucx_figures(output, size, client_cpu + server_cpu)


def ucx_figures(output, size, cpu):
    lines = [line.strip().split(",") for line in output.splitlines() if line.count(",") == 7]
    if len(lines) < 2 or len(lines[0]) != len(lines[-1]):
        raise RuntimeError("ucx_perftest printed no figures:\n" + output)
    row = {name: float(value) for name, value in zip(lines[0], lines[-1])}
    moved = row["iterations"] * size / 1e9
    return {
        "value": row["overall_bw"] * MIB,
        "messages": row["overall_mr"],
        "latency": row["50.0_percentile_lat"],
        "cpu": cpu / moved,
    }


def fi_pingpong(seconds, provider, endpoint, size, expected, cpus):
    """Microseconds one way."""
    require("fi_pingpong")
    with programs.free_port() as port:
        pass
    words = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", max(100, round(seconds * expected)), "-S", size]
    server = programs.Program(words + ["-B", port], cpus[0])
    programs.await_listener(port, server.process.pid)
    client = programs.Program(words + ["-P", port, "127.0.0.1"], cpus[1])
    output, _ = client.finish(seconds)
    server.finish(seconds)
    return {"value": fi_figure(output)}


def fi_figure(output):
    return figure(r"^\d+\w*(?:\s+\S+){5}\s+([\d.]+)\s+[\d.]+$", output, "fi_pingpong")


def sockperf(seconds, size, cpus):
    """Microseconds one way, p50, both sides blocking."""
    require("sockperf")
    with programs.free_port() as port:
        pass
    server = programs.Program(["sockperf", "server", "--tcp", "-i", "127.0.0.1", "-p", port], cpus[0])
    programs.await_listener(port, server.process.pid)
    words = ["sockperf", "ping-pong", "--tcp", "-i", "127.0.0.1", "-p", port, "-t", max(1, round(seconds)), "-m", size]
    output, _ = programs.Program(words, cpus[1]).finish(seconds)
    server.process.send_signal(signal.SIGINT)
    server.finish(0)
    return {"value": sockperf_figure(output)}


def sockperf_figure(output):
    return figure(r"percentile 50\.0+ =\s+([\d.]+)", output, "sockperf")


def iperf(seconds, size, streams, congestion):
    """iperf 2, a thread for each stream, as the receiver saw it; not pinned, for its threads are more than two."""
    require("iperf")
    with programs.free_port() as port:
        pass
    server = programs.Program(["iperf", "-s", "-p", port, "-P", streams])
    programs.await_listener(port, server.process.pid)
    words = ["iperf", "-c", "127.0.0.1", "-p", port, "-t", max(1, round(seconds)), "-P", streams, "-l", size, "-Z", congestion]
    output, _ = programs.Program(words + ["-y", "C"]).finish(seconds)
    server.process.send_signal(signal.SIGTERM)
    server.process.wait()
    server.process.stdout.close()
    return iperf_figures(output, streams)


def iperf_figures(output, streams):
    """The sum of its streams. The server ends by a signal, so CPU is not counted."""
    lines = [line.split(",") for line in output.splitlines() if line.count(",") >= 8]
    of_streams = [line for line in lines if line[5] != "-1"]
    if len(of_streams) != streams:
        raise RuntimeError("iperf printed other than %d streams:\n%s" % (streams, output))
    return {"value": sum(float(line[8]) for line in of_streams) / 8}


def registration(binary, seconds, fabric, kind, size, cpus):
    """Microseconds of one."""
    output, _ = programs.Program([binary, fabric, kind, size, seconds], cpus[0]).finish(seconds)
    return json.loads(output)["microseconds"]


def raw(binary, seconds, what, size, cpus, *more):
    places = [cpu if cpu is not None else at for at, cpu in enumerate(cpus)]
    output, cpu = programs.Program([binary, what, size, seconds, *places, *more]).finish(seconds)
    result = json.loads(output)
    return {
        "value": result["bytes_per_second"],
        "messages": result["operations_per_second"],
        "latency": result["microseconds"],
        "cpu": cpu / (result["bytes_per_second"] * seconds / 1e9),
    }
