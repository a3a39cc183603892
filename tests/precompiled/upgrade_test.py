#!/usr/bin/env python3
"""An upgrade of a package with headers makes what is precompiled anew: else the compiler refuses it, or uses old text."""

import subprocess
import sys
import unittest

MADE_OF, PACKAGES = sys.argv[1:3]


class Upgrade(unittest.TestCase):
    def test_each_precompiled_header_is_made_of_the_list_of_packages(self):
        with open(MADE_OF, encoding="utf-8") as file:
            made_of = [line.rstrip("\n").split(" ", 1) for line in file]
        headers = {label for label, _ in made_of}
        self.assertEqual(len(headers), 5)
        told = {label for label, path in made_of if path == "external/system/packages"}
        self.assertEqual(told, headers)

    def test_the_list_has_what_is_installed_now(self):
        with open(PACKAGES, encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        listed = {name.split(":")[0]: version for name, version in lines}  # without its architecture
        for package in ("linux-libc-dev", "libc6-dev", "libstdc++-12-dev", "libabsl-dev", "libpython3.11-dev", "g++-12"):
            known = subprocess.run(
                ["dpkg-query", "--show", "--showformat=${Version}", package], capture_output=True, text=True, check=True
            )
            self.assertEqual(listed.get(package), known.stdout, package)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
