"""Instructions of the protocol core for each message, counted by callgrind: set-up is subtracted."""

import os
import pathlib
import re
import subprocess
import tempfile

FEW, MANY = 320, 960  # multiples of the coalesced batch
SIDES = {"sender": "StepSending", "receiver": "StepReceiving"}


def _total(binary, scenario, function, count):
    """All instructions inside `function`, and what the program says of its build."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "callgrind.out")
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + output, "--collect-atstart=no"]
        command += ["--toggle-collect=" + function, str(binary), scenario, str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        totals = re.search(r"^(?:summary|totals): (\d+)", pathlib.Path(output).read_text(), re.MULTILINE)
        return int(totals.group(1)), done.stdout.strip()


def is_optimised(binary):
    done = subprocess.run([str(binary), "copied", "1"], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "optimised"


def per_message(binary, scenario):
    """{side: instructions for each message in steady state}"""
    counts = {}
    for side, function in SIDES.items():
        few, _ = _total(binary, scenario, function, FEW)
        many, _ = _total(binary, scenario, function, MANY)
        counts[side] = (many - few) / (MANY - FEW)
    return counts
