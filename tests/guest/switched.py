#!/usr/bin/env python3
"""Runs in the guest: an iperf3 that nobody changed, on an RDMA device by the socket switch.

    switched.py DEVICE ADDRESS SECONDS

Both ends begin on the TCP connection that iperf3 makes, and move to the device once it has carried some bytes. They run as
two users: one user's programs on one host would go on in shared memory. Prints a line for each test, and a table of what
the machine as a whole took: the device is made of software, whose work is no program's.
"""

import json
import os
import signal
import subprocess
import sys
import time

SHARED = "/tmp/shared"
LIBRARIES = "/tmp/switch"  # of any user
STREAMS = 8
PORT = 5201
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def busy_seconds():
    with open("/proc/stat", encoding="ascii") as stat:
        fields = [int(field) for field in stat.readline().split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def await_listener():
    listens = f":{PORT:04X} 00000000:0000 0A"
    for _ in range(200):
        with open("/proc/net/tcp", encoding="ascii") as sockets:
            if any(listens in line for line in sockets):
                return
        time.sleep(0.1)


def switched(way, log):
    rules = "use both server * *:* zcopy={0};use sdp client * *:* zcopy={0}".format("65536" if way == "zcopy" else "never")
    return dict(
        os.environ,
        LD_PRELOAD=LIBRARIES + "/libesdp-switch.so",
        ESDP_SWITCH_MODE="direct",
        ESDP_SWITCH_CONFIG="/dev/null",
        ESDP_SWITCH_RULES=rules,
        ESDP_SWITCH_LOG="4:file:" + log,
    )


def run(way, address, seconds, log):
    """Bytes a second, processor seconds a GB, and what went wrong."""
    environment = None if way == "tcp" else switched(way, log)
    theirs = None if way == "tcp" else switched(way, "/dev/null")
    with subprocess.Popen(
        ["iperf3", "-s", "-1", "-B", address, "-p", str(PORT)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        await_listener()
        before = busy_seconds()
        client = subprocess.run(
            [*NOBODY, "iperf3", "-c", address, "-p", str(PORT), "-P", str(STREAMS), "-l", "1M", "-t", seconds, "-J"],
            env=theirs,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        took = busy_seconds() - before
        said = client.stdout[-400:] + client.stderr[-400:]
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.send_signal(signal.SIGKILL)
            return 0, 0, "the server does not end; the client said:\n" + said
    try:
        total = json.loads(client.stdout)["end"]["sum_received"]
    except (ValueError, KeyError):
        return 0, 0, said
    return total["bits_per_second"] / 8, took / (total["bytes"] / 1e9), ""


def main():
    device, address, seconds = sys.argv[1:4]
    print("| way    MB/s    processor s/GB")
    for way in ("tcp", "copy", "zcopy"):
        log = f"{SHARED}/{device}_switch_{way}.moves"
        if os.path.exists(log):
            os.unlink(log)
        rate, cost, wrong = run(way, address, seconds, log)
        print(f"| {way:6} {rate / 1e6:7.1f} {cost:7.2f}")
        if way == "tcp":
            continue
        moves = 0
        if os.path.exists(log):
            with open(log, encoding="utf-8", errors="replace") as lines:
                moves = sum("goes over verbs" in line for line in lines)
        if not wrong and moves != STREAMS:
            wrong = f"{moves} of {STREAMS} connections moved to the device"
        print(f"{'FAIL' if wrong else 'PASS'} guest.{device}.iperf3_moves_to_the_device_by_{way}")
        for line in wrong.splitlines()[-12:]:
            print("| " + line)


main()
