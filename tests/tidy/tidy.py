#!/usr/bin/env python3
"""The house rules as tests. Prints PASS or FAIL for each rule, and where it is broken.

    tests/tidy/tidy.py [--root DIR] [RULE...]
    tests/tidy/tidy.py --update          writes the documents that are made from the code
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import compiled  # noqa: E402
import generated  # noqa: E402
import includes  # noqa: E402
import names  # noqa: E402
import precompiled  # noqa: E402
import shape  # noqa: E402
import spec_map  # noqa: E402
from tree import Tree  # noqa: E402

RULES = {
    rule.__name__: rule
    for rule in (
        shape.file_sizes,
        shape.function_sizes,
        shape.include_guards,
        shape.contract_blocks,
        shape.one_title,
        shape.links_lead_somewhere,
        shape.no_markers,
        shape.no_dead_files,
        spec_map.every_rule_has_code_and_test,
        generated.generated_documents,
        names.banned_names,
        includes.include_table,
        precompiled.names_what_it_uses,
        compiled.formatted,
        compiled.headers_alone,
        compiled.linted,
    )
}
BREACHES_SHOWN = 40


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    parser.add_argument("rules", nargs="*", metavar="RULE", help=", ".join(RULES))
    parser.add_argument("--update", action="store_true", help="write the documents that are made from the code")
    arguments = parser.parse_args()
    for name in arguments.rules:
        if name not in RULES:
            parser.error(f"{name} is no rule; there are: {', '.join(RULES)}")
    tree = Tree(arguments.root)
    if arguments.update:
        generated.update(tree)
        return 0
    failed = 0
    for name in arguments.rules or RULES:
        breaches = list(RULES[name](tree))
        print(f"{'FAIL' if breaches else 'PASS'} tidy.{name}", flush=True)
        for breach in breaches[:BREACHES_SHOWN]:
            print(f"  {breach}")
        if len(breaches) > BREACHES_SHOWN:
            print(f"  and {len(breaches) - BREACHES_SHOWN} more")
        failed += bool(breaches)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
