"""The comparisons: what is measured, beside what, and the goal that it is held against."""

import json
import os
import statistics
import sys

import programs
from file_cells import FileCells
from serving_cells import ServingCells
from switch_cells import SwitchCells

NAMES = ["zcopy", "bcopy", "latency", "rate", "one_processor", "blocking", "memory", "allocations", "files", "serving"]
NAMES += ["switched", "switched_sizes", "long_path"]

TARGETS = [
    "//tools/esdp_perf",
    "//tests/bench:tcp_ping_pong",
    "//tests/bench:tcp_places",
    "//tests/bench:blocking_calls",
    "//tests/bench:connection_memory",
    "//tests/bench:allocations",
    "//tests/bench:delay_path",
    "//tests/bench:file_transfer",
    "//tests/bench:serve_load",
    "//tools/esdp_copy",
    "//tools/esdp_get",
    "//tools/esdp_serve",
    "//impl/switch/shim:libesdp-switch.so",
    "//impl/switch/engine:libesdp-switch-engine.so",
]

ROUND_TRIPS = (1, 20, 50, 100)  # milliseconds
WARM_UP = 2  # seconds in which the windows of both grow, and which are left out
# As many operations as leave the path to the protocol: 32 MiB of them. What is waited for to be full is read, what
# takes anything is written.
ON_LONG_PATHS = (
    ("BCopy 64 KiB", "64K", ("--size", "64K", "--depth", 512, "--path", "copy")),
    ("ZCopy 1 MiB, read", "1M", ("--size", "1M", "--depth", 32, "--path", "zcopy")),
    (
        "ZCopy 1 MiB, written",
        "1M",
        ("--size", "1M", "--depth", 32, "--path", "zcopy", "--receive-size", "1M", "--receives", 32),
    ),
)


class Bench(FileCells, ServingCells, SwitchCells):
    targets = TARGETS

    def __init__(self, options):
        self.options = options
        self.folder = programs.pathlib.Path(options.bin) if options.bin else programs.build(self.targets)
        with open("/proc/sys/net/ipv4/tcp_congestion_control") as file:
            self.congestion = options.congestion or file.read().strip()
        pinned = not options.no_pin and (os.cpu_count() or 1) > 1
        self.cpus = (0, 1) if pinned else (None, None)
        self.path = None  # a long one, while it is measured

    def measure(self, name):
        return getattr(self, "_" + name)()

    # --- what is measured -------------------------------------------------------------------------

    def _perf(self, *options, cpus=None):
        binary = self.folder / "tools/esdp_perf/esdp_perf"
        words = [str(word) for word in options] + ["--congestion", self.congestion]
        return programs.esdp_perf(binary, self.options.seconds, words, cpus or self.cpus)

    def _stream(self, *options):
        return _stream_of(self._perf(*options))

    def _iperf3(self, size):
        return programs.iperf3(self.options.seconds, size, self.congestion, self.cpus)

    def _beside_iperf3(self, what, size, path, goal, *more):
        """A row for each kind of progress."""
        rows = []
        for progress in ("thread", "manual"):
            title = "%s, depth 8, %s / iperf3 %s" % (what, progress, size)
            words = ("--size", size, "--depth", 8, "--path", path, "--progress", progress, *more)
            ours = lambda: self._stream(*words)
            rows.append(self._pairs(title, ours, lambda: self._iperf3(size), ">=", goal, "B/s"))
        return rows

    def _zcopy(self):
        rows = self._beside_iperf3("ZCopy 1 MiB", "1M", "zcopy", 0.9)
        rows += self._beside_iperf3("ZCopy 1 MiB, pages lent", "1M", "zcopy", 0.9, "--lend-pages")
        # iperf3 sends one and the same megabyte, which stays in the cache: what is left when ours does too?
        same = lambda: self._stream("--size", "1M", "--sources", 1, "--path", "zcopy", "--progress", "manual")
        title = "ZCopy of the same 1 MiB, depth 8, manual / iperf3 1M"
        rows.append(self._pairs(title, same, lambda: self._iperf3("1M"), ">=", 0.9, "B/s"))
        # And what does TCP alone reach out of eight places and into eight?
        ours = lambda: self._stream("--size", "1M", "--depth", 8, "--path", "zcopy", "--progress", "manual")
        rows.append(self._pairs("ZCopy 1 MiB, depth 8, manual / TCP of 8 x 1 MiB", ours, self._tcp_places, ">=", 0.9, "B/s"))
        return rows

    def _tcp_places(self):
        binary = self.folder / "tests/bench/tcp_places"
        return programs.tcp_places(binary, self.options.seconds, 1 << 20, 8, self.congestion, self.cpus)

    def _bcopy(self):
        return self._beside_iperf3("BCopy 64 KiB", "64K", "copy", 0.6)

    def _latency(self):
        def ours():
            result = self._perf("--mode", "latency", "--size", 64, "--progress", "manual")
            return {"value": result["latency_us"]["p50"]}

        def theirs():
            binary = self.folder / "tests/bench/tcp_ping_pong"
            result = programs.tcp_ping_pong(binary, self.options.seconds, 64, self.congestion, self.cpus)
            return {"value": result["p50"]}

        return [self._pairs("64 B ping-pong / spinning TCP, p50 round trip", ours, theirs, "<=", 1.5, "us")]

    def _small_sends(self, *options):
        result = self._perf("--mode", "rate", "--size", 64, *options)
        cpu = result["cpu_seconds_per_gb"]
        return {"value": result["messages_per_second"], "cpu": cpu["client"] + cpu["server"]}

    def _rate(self):
        ours = lambda: self._small_sends("--progress", "manual")
        return [self._alone("64 B streaming sends, manual progress", ours, ">=", 1e6, "messages/s")]

    def _one_processor(self):
        """Each side on one processor of its own, then both on one and the same."""
        paused = lambda: self._small_sends("--progress", "thread", "--pause", 20)
        rows = [self._alone("64 B streaming sends after a pause of 20 ms, thread", paused, ">=", 3e6, "messages/s", least=True)]

        def shared(progress):
            words = ("--size", "64K", "--depth", 64, "--path", "copy", "--progress", progress)
            return {"value": self._perf(*words, cpus=(0, 0))["bytes_per_second"]}

        title = "BCopy 64 KiB, both ends on one processor, manual / thread"
        rows.append(self._pairs(title, lambda: shared("manual"), lambda: shared("thread"), ">=", 0.5, "B/s"))
        return rows

    def _blocking(self):
        """Streams beside our own posts, and beside calls of TCP that block."""

        def calls(*words):
            output, _ = programs.Program([self.folder / "tests/bench/blocking_calls", *words]).finish(self.options.seconds)
            return json.loads(output)

        def move(kind, connections):
            result = calls("move", kind, connections, 1 << 20, self.options.seconds)
            return {"value": result["bytes_per_second"], "cpu": result["cpu_seconds_per_gb"]}

        def ping(kind, cpus):
            return {"value": calls("ping", kind, 64, self.options.seconds, *cpus)["round_trips_per_second"]}

        rows = []
        for connections, goal in ((1, 0.7), (2, 0.9)):
            title = "blocking 1 MiB, connections: %d / ZCopy posted, depth 8" % connections
            ours = lambda: move("streams", connections)
            rows.append(self._pairs(title, ours, lambda: move("posts", connections), ">=", goal, "B/s"))
        for where, cpus in (("two processors", (0, 1)), ("one processor", (0, 0))):
            if max(cpus) < (os.cpu_count() or 1):
                title = "64 B blocking ping-pong on %s / blocking TCP" % where
                ours = lambda: ping("streams", cpus)
                rows.append(self._pairs(title, ours, lambda: ping("tcp", cpus), ">=", 0.8, "round trips/s"))
        return rows

    def _memory(self):
        output, _ = programs.Program([self.folder / "tests/bench/connection_memory", 200]).finish(60)
        idle, used = (float(word) for word in output.split())
        return [
            _row("resident memory of an idle connection", [idle], "<=", 64 * 1024, "B"),
            _row("resident memory of a connection after traffic", [used], "<=", 512 * 1024, "B"),
        ]

    def _long_path(self):
        missing = programs.why_no_long_path()
        if missing:
            print("skipping long_path: " + missing, file=sys.stderr, flush=True)
            return []
        rows = []
        for round_trip in ROUND_TRIPS:
            with programs.LongPath(self.folder / "tests/bench/delay_path", round_trip) as self.path:
                rows += [self._on_long_path(round_trip, *how) for how in ON_LONG_PATHS]
        self.path = None
        return rows

    def _on_long_path(self, round_trip, what, size, words):
        """Not pinned: the path is a program too, and takes a processor where there is one."""
        free = (None, None)

        def ours():
            options = [str(word) for word in words] + ["--congestion", self.congestion]
            binary = self.folder / "tools/esdp_perf/esdp_perf"
            return _stream_of(programs.esdp_perf(binary, self.options.seconds, options, free, self.path, WARM_UP))

        theirs = lambda: programs.iperf3(self.options.seconds, size, self.congestion, free, self.path, WARM_UP)
        title = "%s, round trip of %d ms / iperf3 %s" % (what, round_trip, size)
        return self._pairs(title, ours, theirs, ">=", 0.9, "B/s")

    def _allocations(self):
        rows = []
        for title, words in (("heap allocations per operation", ()), ("in steady state", ("files",))):
            output, _ = programs.Program([self.folder / "tests/bench/allocations", *words]).finish(60)
            for line in output.splitlines():
                path, allocations = line.split()
                rows.append(_row("%s, %s" % (title, path), [float(allocations)], "<=", 0, ""))
        return rows

    # --- how it is measured -----------------------------------------------------------------------

    def _pairs(self, title, ours, theirs, relation, goal, unit):
        return self._row_of(title, *self._paired(ours, theirs), relation, goal, unit)

    def _paired(self, ours, theirs):
        """A B B A ...; a pair during which others used the CPU is thrown away and measured again."""
        kept, thrown = [], 0
        while len(kept) < self.options.pairs:
            before = _cpu_used(self.path)
            if len(kept) % 2 == 0:
                a, b = ours(), theirs()
            else:
                b, a = theirs(), ours()
            if _share_of_others(before, self.path) > self.options.busy and thrown < self.options.pairs:
                thrown += 1
                continue
            kept.append((a, b))
        return kept, thrown

    def _row_of(self, title, kept, thrown, relation, goal, unit, key="value"):
        """Of pairs, and how many were thrown away. No goal: beside what is to be known."""
        row = _row(title, [a[key] / b[key] for a, b in kept], relation, goal, "ratio")
        row["thrown"] = thrown
        row["value_unit"] = unit
        for side, name in ((0, "ours"), (1, "peer")):
            row[name] = statistics.median(pair[side][key] for pair in kept)
            if "p99_us" in kept[0][side] and key == "value":
                row[name + "_p99_us"] = statistics.median(pair[side]["p99_us"] for pair in kept)
            if "cpu" in kept[0][side] and key != "cpu":
                row[name + "_cpu_s_per_gb"] = statistics.median(pair[side]["cpu"] for pair in kept)
        if "copies" in kept[0][0]:
            row["copies_per_byte"] = [max(a["copies"][side] for a, _ in kept) for side in (0, 1)]
        return row

    def _alone(self, title, ours, relation, goal, unit, least=False):
        """`least`: every run has to reach the goal, not the median of them."""
        results = [ours() for _ in range(self.options.pairs)]
        row = _row(title, [result["value"] for result in results], relation, goal, unit)
        row["met"] = row["met"] and (not least or row["least"] >= goal)
        row["ours_cpu_s_per_gb"] = statistics.median(result["cpu"] for result in results)
        return row


def _row(title, values, relation, goal, unit):
    median = statistics.median(values)
    return {
        "what": title,
        "median": median,
        "least": min(values),
        "most": max(values),
        "count": len(values),
        "relation": relation,
        "goal": goal,
        "met": None if goal is None else median >= goal if relation == ">=" else median <= goal,
        "unit": unit,
    }


def _stream_of(result):
    """Of what esdp_perf prints, what a row needs."""
    cpu = result["cpu_seconds_per_gb"]
    return {
        "value": result["bytes_per_second"],
        "cpu": cpu["client"] + cpu["server"],
        "copies": (result["copies_per_byte"]["client"], result["copies_per_byte"]["server"]),
    }


def _cpu_used(path):
    """(what the whole machine used, what our finished children and a path used, of how much), in CPU seconds."""
    tick = os.sysconf("SC_CLK_TCK")
    with open("/proc/stat") as file:
        fields = [int(word) / tick for word in file.readline().split()[1:9]]
    idle = fields[3] + fields[4]
    children = os.times()
    own = children.children_user + children.children_system + children.user + children.system
    own += path.cpu() if path else 0
    return sum(fields) - idle, own, sum(fields)


def _share_of_others(before, path):
    after = _cpu_used(path)
    machine, own, whole = (now - then for now, then in zip(after, before))
    return max(0.0, machine - own) / whole if whole > 0 else 0.0
