#!/usr/bin/env python3
"""Draws what `tests/bench/run --only switched_sizes --json` measured of an unchanged iperf3.

    switch_plot.py RESULTS.json FOLDER

writes switch_bandwidth and switch_cpu there, each as .png and .svg.
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "esdp"  # the same file each time
matplotlib.rcParams["font.size"] = 8

import matplotlib.pyplot as plt  # noqa: E402

WAYS = (("BCopy", "tab:blue"), ("ZCopy", "tab:orange"))


def draw(rows, folder, name, label, value_of):
    counts = sorted({row["streams"] for row in rows})
    figure, all_axes = plt.subplots(1, len(counts), figsize=(2.4 * len(counts), 2.8), sharey=True, squeeze=False)
    for axes, count in zip(all_axes[0], counts):
        chosen = sorted((row for row in rows if row["streams"] == count), key=lambda row: row["x"])
        for way, color in WAYS:
            of_way = [row for row in chosen if row["series"] == way]
            axes.plot([row["x"] for row in of_way], [value_of(row, "ours") for row in of_way], "o-", color=color, label=way, markersize=3)
        plain = [row for row in chosen if row["series"] == WAYS[0][0]]
        axes.plot([row["x"] for row in plain], [value_of(row, "peer") for row in plain], "s--", color="gray", label="TCP", markersize=3)
        sizes = [row["x"] for row in plain]
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, ["%dK" % (size >> 10) if size < 1 << 20 else "%dM" % (size >> 20) for size in sizes], fontsize=6)
        axes.set_title("connections: %d" % count, fontsize=8)
    all_axes[0][0].set_ylim(bottom=0)
    all_axes[0][0].set_ylabel(label)
    all_axes[0][0].legend()
    figure.tight_layout()
    for end in ("png", "svg"):
        figure.savefig(folder / f"{name}.{end}", dpi=120, metadata={"Date": None} if end == "svg" else None)


def main():
    results, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    rows = json.loads(results.read_text(encoding="utf-8"))["rows"]
    rows = [row for row in rows if "streams" in row and "missing" not in row]
    draw(rows, folder, "switch_bandwidth", "GB/s", lambda row, side: row[side] / 1e9)
    draw(rows, folder, "switch_cpu", "CPU s/GB, both sides", lambda row, side: row[side + "_cpu_s_per_gb"])


if __name__ == "__main__":
    main()
