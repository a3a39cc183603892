#!/usr/bin/env python3
"""The layer map, tried: plants a probe in every room that names every library of every other, and compares what Bazel
refuses with the table of who may use whom. Works on a copy of the repository.

    tests/tidy/layers.py BAZEL_OUTPUT_ROOT
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))

# Who may use whom, by package; docs/architecture.md has the same as a table. What is absent may use nothing.
SDP_PART = ["impl/base", "impl/sdp/wire", "impl/sdp/interface", "impl/sdp/common"]
MAY_USE = {
    "api": [],
    "impl/base": [],
    "impl/sdp/wire": ["impl/base"],
    "impl/sdp/interface": ["impl/base", "impl/sdp/common", "impl/sdp/wire"],
    "impl/sdp/common": ["impl/base", "impl/sdp/interface", "impl/sdp/wire"],
    "impl/sdp/flow": SDP_PART,
    "impl/sdp/lifecycle": SDP_PART + ["impl/sdp/flow"],
    "impl/sdp/outbound": SDP_PART + ["impl/sdp/flow", "impl/sdp/lifecycle"],
    "impl/sdp/inbound": SDP_PART + ["impl/sdp/flow"],
    "impl/sdp": SDP_PART + ["impl/sdp/flow", "impl/sdp/outbound", "impl/sdp/inbound", "impl/sdp/lifecycle"],
    "impl/fabric": ["impl/base"],
    "impl/fabric/soft": ["impl/base", "impl/fabric"],
    "impl/fabric/qpip": ["impl/base", "impl/fabric", "impl/fabric/soft"],
    "impl/fabric/local": ["impl/base", "impl/fabric", "impl/fabric/soft"],
    "impl/fabric/verbs": ["impl/base", "impl/fabric"],
    "impl/fabric/sim": ["impl/base", "impl/fabric", "impl/fabric/soft"],
    "impl/fabric/sim/testbed": ["impl/base", "impl/fabric", "impl/fabric/sim"],
    "impl/provider": SDP_PART + ["impl/sdp", "impl/sdp/lifecycle", "impl/fabric", "impl/provider/transport"],
    "impl/provider/transport": ["impl/base", "impl/fabric", "impl/provider"],  # of that the regions
    "impl/files": [],
    "impl/sockets": ["api", "impl/base", "impl/files", "impl/provider"],
    "impl/assembly": None,  # everything
    "impl/switch": ["impl/switch/rules"],
    "impl/switch/rules": [],
    "impl/switch/shim": ["impl/switch", "impl/switch/rules"],
    "impl/switch/engine": ["api", "impl/switch", "impl/switch/rules"],
    "impl/exs": ["api", "impl/switch", "impl/provider"],  # a client, which nobody inside uses; of the last the pair
    "samples": [],
    "tools": [],
    "tools/testbed": ["impl/assembly", "impl/fabric/sim", "impl/fabric/sim/testbed"],
    "tools/esdp_switch": ["impl/switch", "impl/switch/rules"],
    "bindings/python": [],
}
CLIENTS = ["impl/exs", "impl/switch", "impl/switch/engine", "impl/switch/rules", "impl/switch/shim"]
LIBRARY = re.compile(r"//(api|impl/[a-z/]+):([\w-]+)")


class Workspace:
    """A copy of the repository with an output base of its own."""

    def __init__(self, folder, output_root):
        self.root = os.path.join(folder, "copy")
        self.command = ["bazel", "--nohome_rc", f"--output_user_root={output_root}"]
        self.command += [f"--output_base={folder}/output", "--max_idle_secs=30"]
        skipped = shutil.ignore_patterns(".git", "bazel-*", "__pycache__")
        shutil.copytree(ROOT, self.root, ignore=skipped, symlinks=True)

    def bazel(self, *arguments):
        return subprocess.run(self.command + list(arguments), cwd=self.root, capture_output=True, text=True, check=False)

    def libraries(self):
        """(package, label) of every library that is not for tests only."""
        kinds = 'kind("cc_library rule", //api/... + //impl/...)'
        result = self.bazel("query", "--keep_going", f"{kinds} except attr(testonly, 1, {kinds})")
        found = [(match.group(1), match.group(0)) for match in map(LIBRARY.fullmatch, result.stdout.split()) if match]
        if not found:
            sys.exit(f"no libraries found:\n{result.stderr}")
        return found

    def plant(self, package, labels):
        """Adds a library `probe_N` for each label, which depends on it alone."""
        text = "".join(
            f'\ncc_library(name = "probe_{number}", testonly = False, deps = ["{label}"])\n'
            for number, label in enumerate(labels)
        )
        folder = os.path.join(self.root, package)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "BUILD.bazel"), "a", encoding="utf-8") as file:
            file.write(text)


def refusals(workspace, packages):
    """The (package, label) pairs that Bazel refuses, one line of complaint each."""
    probes = [f"//{package}:all" for package in packages]
    result = workspace.bazel("build", "--nobuild", "--keep_going", "--noshow_progress", *probes)
    pattern = re.compile(r"target '(//[^']+)' is not visible from target '//([^:']+):probe_\d+'")
    found = {(package, label) for label, package in pattern.findall(result.stderr)}
    if not found:
        sys.exit(f"Bazel refused nothing at all:\n{result.stderr}")
    return found


def may_use(user, used):
    """Whether the table grants it."""
    return used not in CLIENTS if MAY_USE[user] is None else used in MAY_USE[user]


def breaches(packages, libraries, refused):
    """What differs from the table."""
    usable = {(user, used) for user in packages for used, label in libraries if (user, label) not in refused}
    for user in packages:
        for used, label in libraries:
            granted = used == user or may_use(user, used)
            if not granted and (user, label) not in refused:
                yield f"//{user} can use {label}, and must not"
        for used in sorted({used for used, _ in libraries}):
            if may_use(user, used) and (user, used) not in usable:
                yield f"//{user} can use nothing of //{used}, and should"


def unproved(workspace):
    """Libraries of the pure rooms that the purity test does not look at."""
    pure = 'kind("cc_library rule", //impl/sdp/...)'
    result = workspace.bazel("query", f"{pure} except deps(//tests/tidy:pure_archives)")
    if result.returncode != 0:
        yield f"cannot tell what is pure: {result.stderr}"
    for label in result.stdout.split():
        yield f"{label} is not proved pure: add it to //tests/tidy:pure_archives"


def report(name, problems):
    problems = list(problems)
    print(f"{'FAIL' if problems else 'PASS'} layers.{name}", flush=True)
    for problem in problems:
        print(f"  {problem}")
    return not problems


def main():
    folder = tempfile.mkdtemp(prefix="esdp-layers-")
    workspace = None
    try:
        workspace = Workspace(folder, sys.argv[1])
        libraries = workspace.libraries()
        complete = report("pure_rooms_are_proved_pure", unproved(workspace))
        rooms = {package for package, _ in libraries}
        packages = [package for package in MAY_USE if package in rooms or not package.startswith(("api", "impl"))]
        homeless = [f"//{room} is in no row of the table" for room in sorted(rooms - set(MAY_USE))]
        for package in packages:
            workspace.plant(package, [label for _, label in libraries])
        refused = refusals(workspace, packages)
        obeyed = report("map_is_enforced", homeless + list(breaches(packages, libraries, refused)))
        print(f"  tried {len(packages) * len(libraries)} pairs, {len(refused)} refused")
        return 0 if complete and obeyed else 1
    finally:
        if workspace is not None:
            workspace.bazel("shutdown")
        subprocess.run(["chmod", "-R", "u+w", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
