#!/usr/bin/env python3
"""Draws what tests/bench/paper/paper measured, with what the SDP paper states in red.

    plot.py 2005/figures.tsv 2025/figures.tsv FOLDER

writes figure5 to figure11, operations and two_hundred there, each as .png and .svg. Curves without a red mark are the
model's: the text of the paper has no number for them.
"""

import csv
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "esdp"  # the same file each time
matplotlib.rcParams["font.size"] = 8

import matplotlib.pyplot as plt  # noqa: E402

KIB = 1024
PAPER = {"color": "tab:red", "linestyle": ":", "linewidth": 1}


def read(path):
    with open(path, encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    for row in rows:
        for name in ("mb_s", "cpu_percent", "latency_us"):
            row[name] = float(row[name])
        for name in ("connections", "bytes"):
            row[name] = int(row[name])
    return rows


def size_text(size):
    if size < KIB:
        return str(size)
    return f"{size // KIB}K" if size < KIB * KIB else f"{size // KIB // KIB}M"


def select(rows, figure, curve, **wanted):
    return [r for r in rows if (r["figure"], r["curve"]) == (figure, curve) and all(r[k] == v for k, v in wanted.items())]


def sizes_axis(axes, sizes):
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [size_text(size) for size in sizes], rotation=45)
    axes.minorticks_off()
    axes.set_xlabel("message, bytes")


def curve(axes, points, x, y, label, **style):
    axes.plot([p[x] for p in points], [p[y] for p in points], marker=".", label=label, **style)


def stated(axes, text, y=None, x=None):
    """A number of the paper's text."""
    if y is not None:
        axes.axhline(y, **PAPER)
        axes.annotate(text, (0.02, y), xycoords=("axes fraction", "data"), color="tab:red", va="bottom")
    if x is not None:
        axes.axvline(x, **PAPER)
        axes.annotate(text, (x, 0.98), xycoords=("data", "axes fraction"), color="tab:red", rotation=90, va="top", ha="right")


def finish(figure, folder, name, title):
    figure.suptitle(f"{title}\nred: stated in the paper; all else: model", fontsize=9)
    figure.tight_layout()
    for kind in ("png", "svg"):
        figure.savefig(folder / f"{name}.{kind}", dpi=80, metadata={"Date": None} if kind == "svg" else {"Software": None})
    plt.close(figure)


def pair():
    return plt.subplots(1, 2, figsize=(9, 3.6))


def bandwidth(rows, folder, number, connections, marks, title):
    figure, (left, right) = pair()
    for mode, color in (("BCopy", "tab:gray"), ("ZCopy", "tab:blue")):
        points = select(rows, "bandwidth", mode, connections=connections)
        curve(left, points, "bytes", "mb_s", mode, color=color)
        curve(right, points, "bytes", "cpu_percent", mode, color=color)
    for axes, label in ((left, "MB/s"), (right, "CPU, % of one processor")):
        sizes_axis(axes, [p["bytes"] for p in points])
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
    for axes, text, place in ((a, t, p) for where, t, p in marks for a in [left if where == "left" else right]):
        stated(axes, text, **place)
    left.legend(loc="center right")
    finish(figure, folder, f"figure{number}", title)


def by_connections(rows, folder, number, value, label, marks, title):
    figure, axes = plt.subplots(figsize=(5.5, 3.6))
    for mode, color in (("BCopy", "tab:gray"), ("ZCopy", "tab:blue")):
        for size, style in ((64 * KIB, "--"), (KIB * KIB, "-")):
            points = select(rows, "connections", mode, bytes=size)
            curve(axes, points, "connections", value, f"{mode} {size_text(size)}", color=color, linestyle=style)
    axes.set_xlabel("connections")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    for text, y in marks:
        stated(axes, text, y=y)
    axes.legend()
    finish(figure, folder, f"figure{number}", title)


def latency(rows, folder, number, low, high, title):
    figure, (left, right) = pair()
    for mode, color in (("BCopy", "tab:gray"), ("ZCopy", "tab:blue")):
        points = [p for p in select(rows, "latency", mode) if low <= p["bytes"] <= high]
        curve(left, points, "bytes", "latency_us", mode, color=color)
        curve(right, points, "bytes", "cpu_percent", mode, color=color)
    for axes, label in ((left, "one way, us"), (right, "CPU, %")):
        sizes_axis(axes, [p["bytes"] for p in points])
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
    left.legend()
    finish(figure, folder, f"figure{number}", title)


def operations(rows, folder, name, title):
    figure, panels = plt.subplots(2, 2, figsize=(9, 7))
    colors = {1: "tab:purple", 2: "tab:orange", 4: "tab:green", 8: "tab:blue"}
    (left, right), (lower_left, lower_right) = panels
    for count, color in colors.items():
        one = select(rows, "operations", "read", connections=count)
        sleeping = select(rows, "operations, sleeping", "read", connections=count)
        many = select(rows, "bandwidth", "ZCopy", connections=count)
        curve(left, one, "bytes", "mb_s", f"one socket, {count} operations", color=color)
        curve(left, many, "bytes", "mb_s", f"{count} sockets that block", color=color, linestyle="--")
        curve(right, sleeping, "bytes", "cpu_percent", f"one socket, {count} operations, sleeping", color=color)
        curve(right, many, "bytes", "cpu_percent", f"{count} sockets that block", color=color, linestyle="--")
        written = select(rows, "operations", "written", connections=count)
        curve(lower_left, written, "bytes", "mb_s", f"written, {count}", color=color)
        curve(lower_left, one, "bytes", "mb_s", f"read, {count}", color=color, linestyle="--")
    for means, style in (("copied", "tab:gray"), ("read", "tab:blue"), ("adaptive", "tab:green")):
        curve(lower_right, select(rows, "operations", means, connections=8), "bytes", "mb_s", f"{means}, 8 operations", color=style)
    for axes, label in ((left, "MB/s"), (right, "CPU, % of one processor"), (lower_left, "MB/s"), (lower_right, "MB/s")):
        sizes_axis(axes, [p["bytes"] for p in one])
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=6)
    finish(figure, folder, name, title)


def main():
    old, new, folder = read(sys.argv[1]), read(sys.argv[2]), pathlib.Path(sys.argv[3])
    marks = [
        ("left", "crossover 128 KB", {"x": 128 * KIB}),
        ("left", "1100 MB/s", {"y": 1100}),
        ("right", "ZCopy around 50 %", {"y": 50}),
        ("right", "down to 25 %", {"y": 25}),
        ("right", "BCopy around 100 %", {"y": 100}),
    ]
    bandwidth(old, folder, 5, 1, marks, "Figure 5: one connection")
    marks = [("left", "crossover 32 KB", {"x": 32 * KIB}), ("right", "ZCopy below 50 % from 256 KB", {"y": 50}), ("right", "BCopy 400 %", {"y": 400})]
    bandwidth(old, folder, 6, 2, marks, "Figure 6: two connections")
    marks = [
        ("left", "above 1360 MB/s", {"y": 1360}),
        ("left", "at most 630 MB/s", {"y": 630}),
        ("left", "crossover below 16 KB", {"x": 16 * KIB}),
        ("right", "BCopy 400 %", {"y": 400}),
    ]
    bandwidth(old, folder, 7, 8, marks, "Figure 7: eight connections")
    by_connections(old, folder, 8, "mb_s", "MB/s", [("above 1360", 1360), ("at most 630", 630)], "Figure 8: 64 KB and 1 MB messages")
    by_connections(old, folder, 9, "cpu_percent", "CPU, % of one processor", [("50 % of a single CPU", 50)], "Figure 9: 64 KB and 1 MB messages")
    latency(old, folder, 10, 1, 2 * KIB, "Figure 10: latency of small messages")
    latency(old, folder, 11, 4 * KIB, KIB * KIB, "Figure 11: latency of large messages")
    operations(old, folder, "operations", "Asynchronous sockets on the test-bed of 2005 (the paper's expectation: section 2.2)")
    operations(new, folder, "two_hundred", "The same on 200 Gb/s")


if __name__ == "__main__":
    main()
