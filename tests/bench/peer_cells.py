"""The goals A1 to A22: which two figures make the ratio, and the floor, goal and moonshot that it is held against."""

import collections

import peer_programs
from cells import Bench
from peer_programs import Missing

TARGETS = ["//tools/esdp_perf", "//tests/bench:raw_limits", "//tests/bench:registration", "//tests/bench:tcp_places"]

# `key`: of what both sides give, what is compared. A bar that is None is not set.
Cell = collections.namedtuple("Cell", "name what ours peer key relation floor goal moonshot")

# What UCX does in a second on the machine where the goals were set; it wants a number of operations.
UCX_RATE = {("shm", "64K"): 120e3, ("shm", "1M"): 8e3, ("shm", "4K"): 1.4e6, ("shm", 64): 6e6}
UCX_RATE |= {("tcp", "64K"): 50e3, ("tcp", "1M"): 2e3, ("tcp", 64): 250e3}
SHM, TCP = "posix,cma", "tcp"
# As all peers do: one place that is sent and one that is received into, again and again. They stay in the cache.
HOT = ("--sources", 1, "--targets", 1)
BYTES = {"4K": 4096, "64K": 65536, "1M": 1 << 20, 64: 64}


class PeerBench(Bench):
    targets = TARGETS

    def cells(self):
        local, qpip, raw, ucx = self._local, self._qpip, self._raw, self._ucx
        zcopy = lambda size: local("--size", size, "--path", "zcopy", *HOT)
        foreign = lambda size: local("--size", size, "--path", "zcopy", "--foreign", *HOT)
        copied = lambda size: local("--size", size, "--path", "copy", "--depth", 32, *HOT)
        places = lambda size, path, depth: local("--size", size, "--path", path, "--depth", depth)
        rate = lambda fabric, *words: fabric("--mode", "rate", "--size", 64, *words)
        crosses = lambda ways, size, *bars: at_most(
            "A20", "CPU s/GB: local %sB, %s / BCopy" % (size, ways[0]), ways[1](size), copied(size), "cpu", *bars
        )
        allocated, registered = ("ZCopy", zcopy), ("ZCopy of foreign memory", foreign)
        ping = lambda fabric, how: fabric("--mode", "latency", "--size", 64, "--progress", how)
        at_least = lambda *rest: Cell(*rest[:5], ">=", *rest[5:])
        at_most = lambda *rest: Cell(*rest[:5], "<=", *rest[5:])
        return [
            at_least("A1", "local ZCopy 64 KiB / memcpy", zcopy("64K"), raw("memcpy", "64K"), "value", 0.75, 0.9, None),
            at_least("A1", "local ZCopy 64 KiB / UCX put", zcopy("64K"), ucx(SHM, "ucp_put_bw", "64K"), "value", None, None, 1.0),
            at_least("A2", "local ZCopy 64 KiB / UCX stream", zcopy("64K"), ucx(SHM, "stream_bw", "64K"), "value", 2, 3, 3.7),
            at_least("A3", "local ZCopy 64 KiB / UCX tag", zcopy("64K"), ucx(SHM, "tag_bw", "64K"), "value", 1.5, 2.2, 2.7),
            at_least("A4", "local ZCopy 64 KiB / iperf3", zcopy("64K"), self._tcp("64K"), "value", 5, 6.5, 8),
            at_least("A1", "the same out of 8 places and into 8 / memcpy", places("64K", "zcopy", 8), raw("memcpy", "64K"), "value", None, None, None),
            at_least("A5", "local ZCopy 1 MiB / memcpy", zcopy("1M"), raw("memcpy", "1M"), "value", 0.75, 0.9, 0.95),
            at_least("A5", "local ZCopy 1 MiB / UCX stream", zcopy("1M"), ucx(SHM, "stream_bw", "1M"), "value", 1.6, 2, 2.2),
            at_least("A5", "the same out of 8 places and into 8 / memcpy", places("1M", "zcopy", 8), raw("memcpy", "1M"), "value", None, None, None),
            at_most("A6", "CPU s/GB: local ZCopy 64 KiB / iperf3", zcopy("64K"), self._tcp("64K"), "cpu", 0.3, 0.2, 0.1),
            at_least("A7", "local ZCopy 64 KiB of foreign memory / process_vm_readv", foreign("64K"), raw("readv", "64K"), "value", 0.85, 0.95, 1),
            at_least("A7", "local ZCopy 1 MiB of foreign memory / process_vm_readv", foreign("1M"), raw("readv", "1M"), "value", 0.85, 0.95, 1),
            at_least("A8", "local BCopy 64 KiB / raw ring", copied("64K"), raw("ring", "64K"), "value", 0.8, 0.92, 0.98),
            at_least("A8", "local BCopy 64 KiB / UCX stream", copied("64K"), ucx(SHM, "stream_bw", "64K"), "value", 1, 1.15, 1.3),
            at_least("A8", "the same out of 32 places and into 32 / raw ring", places("64K", "copy", 32), raw("ring", "64K"), "value", None, None, None),
            at_least("A9", "local BCopy 4 KiB / UCX stream", copied("4K"), ucx(SHM, "stream_bw", "4K"), "value", 1.2, 1.6, 2),
            at_least("A10", "local 64 B rate / UCX stream", rate(local), ucx(SHM, "stream_bw", 64), "messages", 1.3, 2.6, 5),
            at_least("A10", "local 64 B rate by SendBatch of 32 / UCX stream", rate(local, "--batch", 32), ucx(SHM, "stream_bw", 64), "messages", 1.3, 2.6, 5),
            at_most("A11", "local 64 B one way / spinning", ping(local, "manual"), raw("spin", 64), "latency", 2, 1.5, 1.25),
            at_most("A11", "local 64 B one way / libfabric shm", ping(local, "manual"), self._fi("shm", "rdm", 1e6), "latency", 0.5, 0.35, None),
            at_most("A12", "local 64 B one way, asleep / futex", ping(local, "thread"), raw("futex", 64), "latency", 1.5, 1.2, 1.1),
            at_most("A12", "local 64 B one way, asleep / sockperf", ping(local, "thread"), self._sockperf, "latency", None, None, 0.5),
            at_least("A13", "qpip BCopy 64 KiB / plain TCP", qpip("--size", "64K", "--path", "copy"), self._plain_of(65536), "value", 0.9, 0.97, 1),
            at_least("A13", "qpip BCopy 64 KiB / UCX tcp stream", qpip("--size", "64K", "--path", "copy"), ucx(TCP, "stream_bw", "64K"), "value", 1, 1.1, 1.6),
            at_least("A14", "qpip, 2 connections, 64 KiB / iperf 2", self._two, self._iperf, "value", 0.85, 0.95, 1),
            at_least("A14", "qpip, 2 connections, 64 KiB / iperf3", self._two, self._tcp("64K", 2), "value", 1.5, 1.9, 2.2),
            at_least("A15", "qpip ZCopy 1 MiB / UCX tcp put", qpip("--size", "1M", "--path", "zcopy"), ucx(TCP, "ucp_put_bw", "1M"), "value", 4, 6, 7),
            at_least("A16", "qpip 64 B rate / UCX tcp stream", rate(qpip), ucx(TCP, "stream_bw", 64), "messages", 4, 10, 30),
            at_least("A16", "qpip 64 B rate / a send() for each", rate(qpip), self._plain_of(64), "messages", 0.5, 1.2, 3.5),
            at_most("A17", "qpip 64 B one way / libfabric tcp", ping(qpip, "manual"), self._fi("tcp", "msg", 2e5), "latency", 1.2, 1, 0.9),
            at_most("A17", "qpip 64 B one way, asleep / sockperf", ping(qpip, "thread"), self._sockperf, "latency", 1.15, 1.05, 1),
            at_least("A18", "local 16 KiB: 1 connection x 8 / 8 x 1", self._many("16K", "zcopy", 1, 8), self._many("16K", "zcopy", 8, 1), "value", 0.9, 0.97, 1.2),
            at_least("A19", "local 64 KiB, 8 connections: ZCopy / BCopy", self._many("64K", "zcopy", 8, 8), self._many("64K", "copy", 8, 8), "value", 1.5, 1.9, 3),
            at_most("A19", "CPU s/GB of the same", self._many("64K", "zcopy", 8, 8), self._many("64K", "copy", 8, 8), "cpu", 0.6, 0.5, 0.2),
            crosses(allocated, "16K", 1, None, None),
            crosses(allocated, "4K", None, 1, None),
            crosses(allocated, "1K", None, None, 1),
            crosses(registered, "32K", 1, None, None),
            crosses(registered, "16K", None, 1, None),
            crosses(registered, "8K", None, None, 1),
            at_most("A21", "local, registering 1 MiB of Allocate / pinning it", self._registered("allocated"), self._pinned, "latency", 0.37, 0.07, 0.02),
            at_most("A21", "local, registering 1 MiB of other memory / pinning it", self._registered("foreign"), self._pinned, "latency", 1.5, 1.1, 1),
            at_least("A22", "local 64 KiB: 8 connections / 1", self._many("64K", "zcopy", 8, 8), self._many("64K", "zcopy", 1, 8), "value", 0.8, 0.95, 1),
        ]

    def measure_cell(self, cell):
        def side(call):
            result = call()
            return {"value": result[cell.key]} | ({"cpu": result["cpu"]} if "cpu" in result else {})

        units = {"value": "B/s", "messages": "messages/s", "latency": "us", "cpu": "CPU s/GB"}
        try:
            bars = [bar for bar in (cell.goal, cell.moonshot, cell.floor) if bar is not None] or [None]
            pairs = self._pairs(cell.what, lambda: side(cell.ours), lambda: side(cell.peer), cell.relation, bars[0], units[cell.key])
        except Missing as missing:
            return {"name": cell.name, "what": cell.what, "missing": str(missing)}
        return pairs | {"name": cell.name, "bars": [cell.floor, cell.goal, cell.moonshot], "reached": reached(cell, pairs["median"])}

    # --- both sides -------------------------------------------------------------------------------

    def _on(self, fabric, words):
        binary = self.folder / "tools/esdp_perf/esdp_perf"
        options = ["--congestion", self.congestion] if fabric == "qpip" else []
        options += [] if "--progress" in words else ["--progress", "manual"]
        options += [str(word) for word in words]
        result = peer_programs.programs.esdp_perf(binary, self.options.seconds, options, self.cpus, fabric=fabric)
        figures = {"value": result["bytes_per_second"], "messages": result["messages_per_second"]}
        figures["cpu"] = sum(result["cpu_seconds_per_gb"].values())
        if result["latency_us"]:
            return {"latency": result["latency_us"]["p50"] / 2}
        return figures

    def _local(self, *words):
        return lambda: self._on("local", words)

    def _qpip(self, *words):
        return lambda: self._on("qpip", words)

    def _many(self, size, path, connections, depth):
        return self._local("--size", size, "--path", path, "--connections", connections, "--depth", depth, *HOT)

    def _two(self):
        return self._on("qpip", ("--size", "64K", "--path", "copy", "--connections", 2))

    def _raw(self, what, size):
        return lambda: peer_programs.raw(self.folder / "tests/bench/raw_limits", self.options.seconds, what, BYTES[size], self.cpus)

    def _pinned(self):
        try:
            return self._raw("pin", "1M")()
        except RuntimeError as error:
            raise Missing("io_uring may not pin here: %s" % error) from error

    def _registered(self, kind):
        binary = self.folder / "tests/bench/registration"
        return lambda: {"latency": peer_programs.registration(binary, self.options.seconds, "local", kind, 1 << 20, self.cpus)}

    def _ucx(self, transports, test, size):
        expected = UCX_RATE["tcp" if transports == TCP else "shm", size]
        return lambda: peer_programs.ucx(self.options.seconds, transports, test, BYTES[size], expected * self.options.ucx_share, self.cpus)

    def _fi(self, provider, endpoint, expected):
        def run():
            count = expected / 2 * self.options.ucx_share
            return {"latency": peer_programs.fi_pingpong(self.options.seconds, provider, endpoint, 64, count, self.cpus)["value"]}

        return run

    def _sockperf(self):
        return {"latency": peer_programs.sockperf(self.options.seconds, 64, self.cpus)["value"]}

    def _tcp(self, size, streams=1):
        def run():
            peer_programs.require("iperf3")
            return peer_programs.programs.iperf3(self.options.seconds, size, self.congestion, self.cpus, streams=streams)

        return run

    def _iperf(self):
        return peer_programs.iperf(self.options.seconds, "64K", 2, self.congestion)

    def _plain_of(self, size):
        def run():
            binary = self.folder / "tests/bench/tcp_places"
            result = peer_programs.programs.tcp_places(binary, self.options.seconds, size, 1, self.congestion, self.cpus)
            return result | {"messages": result["value"] / size}

        return run


def reached(cell, median):
    """The highest bar that the median is not on the wrong side of."""
    best = "-" if cell.floor is cell.goal is cell.moonshot is None else "nothing"
    for name in ("floor", "goal", "moonshot"):
        bar = getattr(cell, name)
        if bar is not None and (median >= bar if cell.relation == ">=" else median <= bar):
            best = name
    return best
