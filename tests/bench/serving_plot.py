#!/usr/bin/env python3
"""Draws what `tests/bench/run --only serving --json` measured beside nginx.

    serving_plot.py RESULTS.json FOLDER

writes serving_sizes and serving_connections there, each as .png and .svg.
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "esdp"  # the same file each time
matplotlib.rcParams["font.size"] = 8

import matplotlib.pyplot as plt  # noqa: E402

SIDES = (("ours", "esdp_serve", "tab:blue"), ("peer", "nginx", "tab:orange"))


def bars(axes, rows, scale, names):
    width = 0.4
    for index, (side, label, color) in enumerate(SIDES):
        at = [place + (index - 0.5) * width for place in range(len(rows))]
        drawn = axes.bar(at, [row[side] / scale for row in rows], width, label=label, color=color)
        axes.bar_label(drawn, fmt="%.3g", fontsize=6)
    axes.set_xticks(range(len(rows)), names)
    axes.legend()


def draw(rows, folder, series, scale, labels, name_of):
    chosen = sorted((row for row in rows if row.get("series") == series and "missing" not in row), key=lambda row: row["x"])
    figure, axes = plt.subplots(figsize=(4.5, 2.8))
    bars(axes, chosen, scale, [name_of(row["x"]) for row in chosen])
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    figure.tight_layout()
    for end in ("png", "svg"):
        figure.savefig(folder / f"serving_{series}.{end}", dpi=120, metadata={"Date": None} if end == "svg" else None)


def size_text(size):
    return f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"


def main():
    results, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    rows = json.loads(results.read_text(encoding="utf-8"))["rows"]
    draw(rows, folder, "sizes", 1e9, ("file, one client", "GB/s"), size_text)
    draw(rows, folder, "connections", 1e3, ("connections, files of 4 KiB", "thousand files/s"), str)


if __name__ == "__main__":
    main()
