"""What the sockets of esdp.socket_compat have in common: the Context, and values as the module socket takes them."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket as _system
import threading
from typing import Any, List, Optional, Tuple

from esdp._core import Context
from esdp._errors import Error

Address = Tuple[Any, ...]

_GRACE = 10.0  # seconds in which what was sent may still leave at the end of the program


class Shared:
    """What all sockets of the process have in common."""

    lock = threading.Lock()
    context: Optional[Context] = None
    owned: Optional[Context] = None  # opened here, and closed at the end
    of_parents: List[Context] = []  # a child of fork must not end them
    timeout: Optional[float] = None


def use_context(context: Optional[Context]) -> None:
    """What sockets that connect or listen from here on use; None: one of the module's own."""
    with Shared.lock:
        Shared.context = context


def context_of_process() -> Context:
    with Shared.lock:
        if Shared.context is not None:
            return Shared.context
        if Shared.owned is None or Shared.owned.closed:
            Shared.owned = Context()
        return Shared.owned


def _end() -> None:
    if Shared.owned is not None:
        with contextlib.suppress(Error):
            Shared.owned.close(timeout=_GRACE)


def _forget() -> None:
    Shared.lock = threading.Lock()
    Shared.of_parents += [one for one in (Shared.context, Shared.owned) if one is not None]
    Shared.context = Shared.owned = None


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)


def checked(timeout: Optional[float]) -> Optional[float]:
    if timeout is None:
        return None
    seconds = float(timeout) if not isinstance(timeout, str) else _refuse_type(timeout)
    if seconds != seconds:
        raise ValueError("Invalid value NaN (not a number)")
    if seconds < 0:
        raise ValueError("Timeout value out of range")
    return seconds


def _refuse_type(value: Any) -> float:
    raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")


def failure(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def resolved(call: str, address: Any, family: int, passive: bool) -> Tuple[str, int]:
    """A numeric address. What is wrong is told as the module socket does."""
    name = _system.AddressFamily(family).name
    if not isinstance(address, tuple):
        raise TypeError(f"{call}(): {name} address must be tuple, not {type(address).__name__}")
    if len(address) < 2 or len(address) > (4 if family == _system.AF_INET6 else 2):
        raise TypeError(f"{name} address must be a pair (host, port)")
    host, port = address[:2]
    if not isinstance(port, int):
        raise TypeError(f"'{type(port).__name__}' object cannot be interpreted as an integer")
    if not 0 <= port <= 65535:
        raise OverflowError(f"{call}(): port must be 0-65535.")
    flags = _system.AI_PASSIVE if passive else 0
    found = _system.getaddrinfo(host or None, port, family, _system.SOCK_STREAM, 0, flags)
    numeric = str(found[0][4][0]).partition("%")[0]
    if not passive:  # a peer at no address is one on this machine
        numeric = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(numeric, numeric)
    return numeric, port
