"""Prints what was measured, for people."""

import os
import platform


def machine(bench):
    model = ""
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {
        "cpu": model,
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "congestion": bench.congestion,
        "pinned": bench.cpus[0] is not None,
        "pairs": bench.options.pairs,
        "seconds": bench.options.seconds,
    }


def table(about, rows):
    lines = [
        "%s, %d CPUs, Linux %s, %s, %s; %d pairs of %g s, A B B A, medians of pair ratios"
        % (
            about["cpu"],
            about["cpus"],
            about["kernel"],
            about["congestion"],
            "pinned" if about["pinned"] else "not pinned",
            about["pairs"],
            about["seconds"],
        ),
        "",
        "| what | median | least .. most | goal | met | ours ; CPU s/GB | peer ; CPU s/GB | copies per byte |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "missing" in row:
            lines.append("| %s | not measured: %s not installed | | | | | | |" % (row["what"], " and ".join(row["missing"])))
            continue
        copies = row.get("copies_per_byte")
        cells = [
            row["what"],
            _quantity(row["median"], row["unit"]),
            "%s .. %s" % (_quantity(row["least"], row["unit"]), _quantity(row["most"], row["unit"])),
            "-" if row["goal"] is None else "%s %s" % (row["relation"], _quantity(row["goal"], row["unit"])),
            {True: "yes", False: "NO", None: "-"}[row["met"]],
            side(row, "ours"),
            side(row, "peer"),
            "%.2f ; %.2f" % tuple(copies) if copies else "-",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def side(row, name):
    parts = []
    if name in row:
        parts.append(_quantity(row[name], row["value_unit"]))
    if name + "_p99_us" in row:
        parts.append("p99 %.0f us" % row[name + "_p99_us"])
    if name + "_cpu_s_per_gb" in row:
        parts.append("%.2f" % row[name + "_cpu_s_per_gb"])
    return " ; ".join(parts) or "-"


def _quantity(value, unit):
    if unit == "ratio":
        return "%.2f" % value
    if unit == "B/s":
        return "%.0f MB/s" % (value / 1e6)
    if unit == "B":
        return "%.1f KiB" % (value / 1024)
    if unit == "messages/s":
        return "%.2f M/s" % (value / 1e6)
    if unit == "files/s":
        return "%.0f files/s" % value
    if unit == "s/GB":
        return "%.2f s/GB" % value
    if unit == "CPU s/GB":
        return "%.3f" % value
    if unit == "us":
        return "%.2f us" % value
    return "%g" % value
