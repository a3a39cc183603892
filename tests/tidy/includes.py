"""The include table of docs/architecture.md: which room may include what, ours and outside."""

import re

from tree import Breach

# Headers of the C++ standard library by which a pure room could reach the system, threads, a clock or chance.
IMPURE_STANDARD = set(
    "barrier condition_variable csignal cstdio cstdlib ctime execution filesystem fstream future iostream "
    "istream latch mutex ostream random semaphore shared_mutex stop_token syncstream thread".split()
)

# What a pure room may take from the base room: the targets without a door to the system.
PURE_BASE = "impl/base/(bytes|check|digest|handle_table|learned_threshold|moves|random|ring|ring_slots|time|trace)[.]h"
BASE = "impl/base/.*"
PORT = "impl/fabric/[^/]*"
SOFT = "impl/fabric/soft/.*"
TRANSPORT = "impl/provider/transport/.*"
ABSEIL = "absl/.*"
API_ABSEIL = "absl/(status|time|types)/.*"
POSIX = r"(sys|net|netinet|arpa|linux)/.*[.]h|[a-z_0-9]+[.]h"


class Room:
    """`paths` are the files of the room; `ours` and `outside` what these may include beside their own folder."""

    def __init__(self, paths, ours=(), outside=(), pure=False):
        self.paths = re.compile(paths)
        self.ours = [re.compile(pattern) for pattern in ours]
        self.outside = [re.compile(pattern) for pattern in outside]
        self.pure = pure


# The first room that a path belongs to decides.
ROOMS = [
    # The ES-API, for programs in C.
    Room("api/sys/.*", outside=["stdint[.]h", "stddef[.]h", "sys/(exs|socket|time).*[.]h"]),
    Room("api/.*", ["esdp/.*"], [API_ABSEIL]),
    Room(r"impl/base/(clock|secure_random|shared_memory|spare_mappings)[.]cc", [BASE], [ABSEIL, POSIX]),
    Room(PURE_BASE.replace("[.]h", "[.](h|cc)"), [PURE_BASE], pure=True),
    Room("impl/base/.*", [BASE], [ABSEIL]),
    Room("impl/precompiled/standard[.]h", pure=True),
    Room("impl/precompiled/common[.]h", [], [ABSEIL]),
    Room("impl/precompiled/bindings[.]h", [], [API_ABSEIL, "pybind11/.*"]),
    Room("impl/sdp/wire/.*", [PURE_BASE, "impl/sdp/wire/.*"], pure=True),
    Room("impl/sdp/.*", [PURE_BASE, "impl/sdp/.*"], pure=True),
    Room(
        "impl/fabric/qpip/(mpa|ddp|rdmap|crc32c)[^/]*",
        [PURE_BASE, "impl/fabric/qpip/(mpa|ddp|rdmap|crc32c)[^/]*"],
        ["isa-l[.]h", "isa-l/.*", "crc[.]h"],
        pure=True,
    ),
    # What those of real time wait on.
    Room("impl/fabric/soft/poller[.]cc", [BASE, PORT, SOFT], [ABSEIL, "sys/epoll[.]h", "unistd[.]h"]),
    Room("impl/fabric/soft/posting[.]cc", [BASE, PORT, SOFT], [ABSEIL, "sys/mman[.]h", "unistd[.]h"]),
    Room(SOFT, [BASE, PORT, SOFT], [ABSEIL]),
    Room("impl/fabric/qpip/.*", [BASE, PORT, SOFT, "impl/fabric/qpip/.*"], [ABSEIL, POSIX]),
    Room("impl/fabric/local/.*", [BASE, PORT, SOFT, "impl/fabric/local/.*"], [ABSEIL, POSIX]),
    Room(
        "impl/fabric/verbs/.*",
        [BASE, PORT, "impl/fabric/verbs/.*"],
        [ABSEIL, POSIX, "infiniband/.*", "rdma/.*"],
    ),
    Room("impl/fabric/sim/.*", [BASE, PORT, SOFT, "impl/fabric/sim/.*"], [ABSEIL]),
    # Addresses as text: functions of their arguments.
    Room("impl/fabric/types[.]cc", [BASE, PORT], [ABSEIL, "arpa/inet[.]h", "netinet/in[.]h"]),
    # What every fabric lets its caller wait on.
    Room("impl/fabric/ready_descriptor[.]cc", [PORT], ["sys/eventfd[.]h", "unistd[.]h"]),
    # Addresses as the system's calls take them.
    Room("impl/fabric/socket_address.*", [BASE, PORT], [ABSEIL, "netinet/in[.]h", "sys/socket[.]h"]),
    Room("impl/fabric/.*", [BASE, PORT], [ABSEIL]),
    # The private buffers are mapped, so that untouched ones cost nothing.
    Room("impl/provider/transport/buffer_pool.*", [BASE, PORT, TRANSPORT], [ABSEIL, POSIX]),
    # Transports know neither sessions nor SDP.
    Room(TRANSPORT, [BASE, PORT, "impl/provider/regions[.]h", TRANSPORT], [ABSEIL]),
    # Threads and waiting live in progress.
    Room(
        "impl/provider/(progress/(progress|poll_leader).*|shard_lock.*)",
        [BASE, "impl/sdp/.*", PORT, "impl/provider/.*"],
        [ABSEIL, POSIX],
    ),
    # The one place where a thread of ours waits: on a fabric's descriptors, a timer and a doorbell.
    Room(
        "impl/provider/progress/wait_set[.]cc",
        [BASE, PORT, "impl/provider/.*"],
        [ABSEIL, "poll[.]h", "sys/(epoll|eventfd|timerfd)[.]h", "unistd[.]h"],
    ),
    # And one that others wait on.
    Room(
        "impl/provider/progress/socket_pair[.]cc",
        ["impl/provider/progress/socket_pair[.]h"],
        ["poll[.]h", "sys/socket[.]h", "unistd[.]h"],
    ),
    # Free memory goes back to the system.
    Room("impl/provider/residue[.]cc", ["impl/provider/residue[.]h"], ["malloc[.]h"]),
    Room("impl/provider/.*", [BASE, "impl/sdp/.*", PORT, "impl/provider/.*"], [ABSEIL]),
    # Tells a child of fork from its parent.
    Room(
        "impl/sockets/context/fork_epoch[.]cc",
        ["esdp/.*", BASE, "impl/sockets/.*"],
        [ABSEIL, "pthread[.]h"],
    ),
    # Memory for regions, in whole pages.
    Room("impl/sockets/memory/owned_memory[.]cc", ["impl/sockets/memory/owned_memory[.]h"], ["sys/mman[.]h"]),
    Room("impl/sockets/memory/owned_memory[.]h", [BASE], [ABSEIL]),
    # Addresses as text, again.
    Room(
        "impl/sockets/address[.]cc",
        ["esdp/.*", BASE, "impl/provider/.*", "impl/sockets/.*"],
        [ABSEIL, "arpa/inet[.]h", "netinet/in[.]h"],
    ),
    Room(
        "impl/sockets/queue/event_(queue|wait).*",
        ["esdp/.*", BASE, "impl/provider/.*", "impl/sockets/.*"],
        [ABSEIL, POSIX],
    ),
    # And one that waits for a descriptor of the application's.
    Room(
        "impl/sockets/context/waits_beside[.]cc",
        ["esdp/.*", BASE, "impl/provider/.*", "impl/sockets/.*"],
        [ABSEIL, "poll[.]h"],
    ),
    Room(
        "impl/sockets/.*",
        ["esdp/.*", BASE, "impl/files/.*", "impl/provider/.*", "impl/sockets/.*"],
        [ABSEIL],
    ),
    Room("impl/files/.*", ["impl/files/.*"], [ABSEIL, POSIX]),
    Room("impl/assembly/diagnose.*", ["esdp/.*", "impl/.*"], [ABSEIL, POSIX]),
    Room("impl/assembly/.*", ["esdp/.*", "impl/.*"], [ABSEIL]),
    # Relays what the switch takes: a client of the public headers.
    Room("impl/switch/engine/.*", ["esdp/.*", "impl/switch/.*"], [API_ABSEIL, POSIX]),
    # The calls of libc, in its place.
    Room("impl/switch/.*", ["impl/switch/.*"], [POSIX]),
    Room(
        "impl/exs/.*",
        ["esdp/.*", "impl/exs/.*", "impl/switch/.*", "impl/provider/progress/socket_pair[.]h"],
        [API_ABSEIL, POSIX],
    ),
    Room("bindings/python/.*", ["esdp/.*", "bindings/python/.*"], [API_ABSEIL, "pybind11/.*"]),
    Room("samples/.*", ["esdp/.*", "samples/.*"], [ABSEIL, POSIX]),
    # Test-beds for the simulator: their files, and programs on their hosts.
    Room("tools/testbed/text[.].*", ["tools/testbed/.*"], [ABSEIL, "google/protobuf/.*", "testbed[.]pb[.]h"]),
    Room(
        "tools/testbed/.*",
        ["esdp/.*", "impl/assembly/simulated_host[.]h", "impl/fabric/sim/(testbed/.*|world[.]h)", "tools/testbed/.*"],
        [ABSEIL],
    ),
    Room(
        "tools/esdp_(files|serve|get)/.*",
        ["esdp/.*", "tools/esdp_(files|serve|get)/.*", "tools/esdp_copy/progress_bar[.]h"],
        [ABSEIL, POSIX, "isa-l/crc[.]h", "openssl/evp[.]h", "esdp_files[.]pb[.]h", "google/protobuf/message_lite[.]h"],
    ),
    # Reads what the socket switch shows, and the rules that it goes by.
    Room(
        "tools/esdp_switch/.*",
        ["impl/switch/(rules/.*|status_record)[.]h", "tools/esdp_switch/.*"],
        [POSIX],
    ),
    Room("tools/.*", ["esdp/.*", "tools/.*"], [ABSEIL, POSIX, "openssl/(evp|sha)[.]h"]),
]

_INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def _is_ours(path):
    return path.startswith(("esdp/", "impl/", "api/", "bindings/", "samples/", "tests/", "tools/"))


def _is_standard(name):
    return re.fullmatch("[a-z_0-9]+", name) is not None


def _wrong(room, name):
    """Why the room may not include this, or None."""
    if _is_ours(name):
        if any(pattern.fullmatch(name) for pattern in room.ours):
            return None
        return "this room may not use that one of ours"
    if _is_standard(name):
        return "a pure room reaches nothing outside" if room.pure and name in IMPURE_STANDARD else None
    if any(pattern.fullmatch(name) for pattern in room.outside):
        return None
    return "this room may not use that outside header"


def include_table(tree):
    """Every #include obeys the table of who may use whom."""
    for path in tree.sources(("api", "impl", "bindings", "samples", "tools")):
        room = next((room for room in ROOMS if room.paths.fullmatch(path)), None)
        if room is None:
            yield Breach(path, 1, "belongs to no room of the include table (tests/tidy/includes.py)")
            continue
        for number, line in enumerate(tree.code_lines(path), 1):
            match = _INCLUDE.match(line)
            if match is None:
                continue
            reason = _wrong(room, match.group(2))
            if reason is not None:
                yield Breach(path, number, f"#include {match.group(2)}: {reason}")
