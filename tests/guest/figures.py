#!/usr/bin/env python3
"""Runs in the guest: our programs beside perftest's and rstream's on the same device, in turns, and prints a table.

    figures.py DEVICE ADDRESS PAIRS[:ROW,...]      rows by their beginnings, as B1,B2; all unless told

Each pair is one run of each, ours first in every other pair. A ratio is the median of the pairs' ratios; the spread is the
lowest and the highest of them. No ratio is a pass or a failure: an emulated machine says how programs on one device compare,
in one run, on an idle host.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time

SHARED = "/tmp/shared"
MIB = 1 << 20
STARTUP = 1.5  # seconds a server gets to listen


class Lost(Exception):
    pass


def run(server, client):
    """What the client prints, and the seconds of processor that both took."""
    before = os.times()
    with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as far:
        time.sleep(STARTUP)
        try:
            near = subprocess.run(client, capture_output=True, text=True, timeout=90, check=False)
        except subprocess.TimeoutExpired as late:
            raise Lost(f"{client[0]} takes more than 90 s") from late
        finally:
            try:
                far.wait(timeout=5)
            except subprocess.TimeoutExpired:
                far.kill()
    if near.returncode != 0:
        raise Lost(f"{' '.join(client)}: {near.stderr.strip() or near.stdout.strip()}")
    after = os.times()
    return near.stdout, after.children_user + after.children_system - before.children_user - before.children_system


class Programs:
    def __init__(self, device, address):
        self.device, self.address = device, address

    def esdp(self, *options):
        perf = SHARED + "/esdp_perf"
        fabric = ["--fabric", "verbs:" + self.device]
        server = [perf, "--server", "--listen", self.address, "--port", "7481", "--sessions", "1", *fabric]
        client = [perf, "--connect", self.address, "--port", "7481", "--json", "--quiet", *fabric, *options]
        text, cpu = run(server, client)
        return json.loads(text), cpu

    def esdp_mbytes(self, *options):
        return self.esdp(*options)[0]["bytes_per_second"] / 1e6

    def perftest(self, tool, size, *options):
        common = [tool, "-d", self.device, "-R", "-F", "-s", str(size), *options]
        text, cpu = run(common, common + [self.address])
        row = [line for line in text.splitlines() if re.match(rf"\s*{size}\s", line)][-1].split()
        return row, cpu

    def perftest_mbytes(self, tool, size, count, *options):
        return float(self.perftest(tool, size, "-n", str(count), *options)[0][3]) * MIB / 1e6

    def stream(self, tool, size, count, rounds, *options):
        common = [tool, "-S", str(size), "-C", str(count), "-I", str(rounds), *options]
        text, _ = run(common, common + ["-s", self.address])
        return text.strip().splitlines()[-1].split()

    def stream_mbytes(self, tool, size, count, *options):
        row = self.stream(tool, size, count, 1, *options)
        return float(row[-2].rstrip("Gb")) * 1e9 / 8 / 1e6 if row[-2] else 0.0

    def send_latency(self):
        # As long as ours: what an emulated processor does for the first time takes it twice as long.
        return float(self.perftest("ib_send_lat", 64, "-n", "50000")[0][4])

    def stream_latency(self):
        return float(self.stream("rstream", 64, 1, 50000, "-T", "a")[-1])

    def esdp_latency(self):
        result = self.esdp("--mode", "latency", "--size", "64", "--seconds", "2", "--progress", "manual")[0]
        return result["latency_us"]["p50"] / 2


# Who spins, as perftest's programs do; and receive buffers for four sends of 64 KiB and SDP's header: beside a single one
# the header would take a packet of its own.
SPIN = ["--progress", "manual"]
WHOLE = ["--buffer-bytes", "262128", "--buffers", "8"]
# A receive that takes what comes is shown to the peer, which writes to it; one that is filled whole reads.
WRITTEN = {"1M": ["--receive-size", "1M"], "64K": ["--receive-size", "64K"]}


def rows(of):
    """Name, ours, theirs."""
    whole = {"1M": "96M", "64K": "32M"}
    zcopy = lambda size, *options: of.esdp_mbytes("--path", "zcopy", "--size", size, "--bytes", whole[size], "--depth", "16",
                                                  *options)
    copy = ["--path", "copy", "--bytes", "32M", "--size", "64K", "--depth", "16", *WHOLE]
    large = lambda: zcopy("1M", *SPIN, *WRITTEN["1M"])
    small = lambda depth: of.esdp_mbytes("--path", "zcopy", "--bytes", "16M", "--size", "64K", *SPIN, "--depth", depth)
    yield ("B1 zcopy 1 MiB, read / ib_read_bw, MB/s", lambda: zcopy("1M", *SPIN),
           lambda: of.perftest_mbytes("ib_read_bw", MIB, 96))
    yield ("B2 bcopy 64 KiB / ib_send_bw, MB/s", lambda: of.esdp_mbytes(*copy, *SPIN),
           lambda: of.perftest_mbytes("ib_send_bw", 65536, 512))
    yield ("B2 bcopy 64 KiB, sleeping / ib_send_bw -e, MB/s", lambda: of.esdp_mbytes(*copy),
           lambda: of.perftest_mbytes("ib_send_bw", 65536, 512, "-e"))
    yield "B3 zcopy 1 MiB, written / ib_write_bw, MB/s", large, lambda: of.perftest_mbytes("ib_write_bw", MIB, 96)
    yield ("B4 bcopy 64 KiB / rstream -T a, MB/s", lambda: of.esdp_mbytes(*copy, *SPIN),
           lambda: of.stream_mbytes("rstream", 65536, 256, "-T", "a"))
    yield ("B4 zcopy 64 KiB, written / riostream, MB/s", lambda: zcopy("64K", *SPIN, *WRITTEN["64K"]),
           lambda: of.stream_mbytes("riostream", 65536, 256))
    yield "B5 zcopy 1 MiB, written / riostream, MB/s", large, lambda: of.stream_mbytes("riostream", MIB, 32)
    yield "B6 64 bytes one way / ib_send_lat, us (less is better)", of.esdp_latency, of.send_latency
    yield "B6 64 bytes one way / rstream -T a, us (less is better)", of.esdp_latency, of.stream_latency
    yield "B7 zcopy 64 KiB, read, 8 outstanding / 1, MB/s", lambda: small("8"), lambda: small("1")
    yield ("B8 processor per MB, bcopy 64 KiB, sleeping / ib_send_bw -e, ms (less is better)",
           lambda: of.esdp(*copy)[1] * 1e3 / 33.6,
           lambda: of.perftest("ib_send_bw", 65536, "-n", "512", "-e")[1] * 1e3 / 33.6)


def figure(of_program):
    """A busy host keeps a server from listening in time: it gets a second chance."""
    try:
        return of_program()
    except Lost:
        return of_program()


def main():
    of = Programs(sys.argv[1], sys.argv[2])
    number, _, wanted = sys.argv[3].partition(":")
    pairs = int(number)
    print(f"| on {sys.argv[1]}, {pairs} pairs | ours | theirs | ratio | lowest to highest |", flush=True)
    print("|---|---|---|---|---|", flush=True)
    for name, ours, theirs in rows(of):
        if not name.startswith(tuple(wanted.split(","))):
            continue
        mine, others = [], []
        try:
            for pair in range(pairs):
                for which in ((ours, mine), (theirs, others)) if pair % 2 == 0 else ((theirs, others), (ours, mine)):
                    which[1].append(figure(which[0]))
        except Lost as lost:
            print(f"| {name} | {lost} | | | |", flush=True)
            continue
        ratios = [one / two for one, two in zip(mine, others)]
        print(f"| {name} | {statistics.median(mine):.1f} | {statistics.median(others):.1f} | {statistics.median(ratios):.2f} | "
              f"{min(ratios):.2f} to {max(ratios):.2f} |", flush=True)


if __name__ == "__main__":
    main()
