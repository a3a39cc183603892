"""Names that are banned, with what to write in their place."""

import re
from typing import NamedTuple

from tree import Breach


class Ban(NamedTuple):
    pattern: str  # of code, comments and strings left out
    wanted: str
    rooms: tuple = ("api", "impl")
    allowed_in: str = ""  # paths, as a regular expression


def _call(names):
    """Calls of free functions: not members, not declarations of our own in another case."""
    return rf"(?<![\w.>])(?:std::|::)?(?:{names})\s*\("


BANS = (
    Ban(
        _call("rand|srand|drand48") + r"|\bstd::(random_device|mt19937(_64)?|default_random_engine)\b",
        "Random of impl/base/random.h, seeded from outside; SecureRandom for what a peer must not guess",
    ),
    Ban(
        r"\bchrono::(system_clock|steady_clock|high_resolution_clock)\b|"
        + _call("clock_gettime|gettimeofday")
        + r"|\bstd::(time|clock)\s*\(|(?<![\w.>])time\s*\(\s*(nullptr|NULL|0|&)|\babsl::(Now|GetCurrentTimeNanos)\b",
        "Clock of impl/base/clock.h, handed in; the protocol core takes `now` as a parameter",
        allowed_in=r"impl/(base/clock|switch/monotonic)[.]cc",
    ),
    Ban(
        _call("sleep|usleep|nanosleep|clock_nanosleep") + r"|\bsleep_(for|until)\b|\babsl::SleepFor\b",
        "wait on a descriptor or a condition variable, with a deadline",
    ),
    Ban(
        _call("abort|exit|_exit|_Exit|quick_exit|terminate|assert"),
        "ESDP_CHECK and a status: a library never ends its process",
    ),
    Ban(
        _call("memcpy|memmove|mempcpy|bcopy|strcpy|strncpy|strcat|__builtin_memcpy"),
        "CopyBytes of impl/base/bytes.h, so that every copy can be found and counted",
        allowed_in=r"impl/base/.*",
    ),
    Ban(
        _call("printf|fprintf|vprintf|puts|perror|putchar") + r"|\bstd::(cout|cerr|clog)\b",
        "a Status, an Event or the trace: a library does not print",
    ),
    Ban(
        _call("getenv|setenv|secure_getenv"),
        "an option: a library does not read the environment",
        allowed_in=r"impl/(exs|switch/shim)/environment[.]cc",  # neither has a caller with options
    ),
    Ban(
        _call("sigaction|sigprocmask|atexit") + r"|(?<![\w.>])signal\s*\(\s*SIG",
        "nothing: a library installs no handlers",
        allowed_in=r"impl/sockets/queue/event_wait_word[.]cc",  # which only asks
    ),
    Ban(
        r"\babsl::(Mutex|CondVar|Notification|MutexLock|BlockingCounter)\b",
        "std::mutex and std::condition_variable: Debian's absl::Mutex is not known to ThreadSanitizer",
    ),
    Ban(r"\busing\s+namespace\b", "the names one by one", rooms=("api", "impl", "samples", "tests", "tools")),
    Ban(r"\bthrow\b(?!\s*\()", "a Status: no exception crosses a border"),
    Ban(r"#\s*define\s+(private|protected)\b", "a test of what the class shows", rooms=("api", "impl", "tests")),
)


def banned_names(tree):
    """Nothing is called that has a better replacement here."""
    for ban in BANS:
        pattern = re.compile(ban.pattern)
        allowed = re.compile(ban.allowed_in) if ban.allowed_in else None
        for path in tree.sources(ban.rooms):
            if allowed is not None and allowed.fullmatch(path):
                continue
            for number, line in enumerate(tree.code_lines(path), 1):
                match = pattern.search(line)
                if match:
                    yield Breach(path, number, f"{match.group(0).strip()} is banned; wanted: {ban.wanted}")
