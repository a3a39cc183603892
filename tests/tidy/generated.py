"""Documents that are made from the code. A rule compares the committed copies; `tidy.py --update` writes them."""

import os

import machines
import spec_map
from tree import Breach

PAGES = {spec_map.MAP: spec_map.page, machines.PAGE: machines.page}


def generated_documents(tree):
    """A document that is made from the code says what the code says now."""
    if spec_map.RULES not in tree.paths:
        return
    for path, page in PAGES.items():
        if path not in tree.paths:
            yield Breach(path, 1, "is missing: run tests/tidy/tidy.py --update")
            continue
        for number, (held, made) in enumerate(zip(tree.lines(path) + [""], page(tree).splitlines() + [""]), 1):
            if held != made:
                yield Breach(path, number, "is not what the code says now: run tests/tidy/tidy.py --update")
                break


def update(tree):
    for path, page in PAGES.items():
        with open(os.path.join(tree.root, path), "w", encoding="utf-8") as file:
            file.write(page(tree))
