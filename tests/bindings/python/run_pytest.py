#!/usr/bin/python3
"""Runs a file of tests with pytest, so that Bazel counts each case.

    run_pytest.py FILE

The package esdp is imported from the runfiles, by this process and by those that it starts.
"""

import os
import sys

RUNFILES = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])

environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", MPLBACKEND="Agg")
environment["PYTHONPATH"] = os.path.join(RUNFILES, "bindings/python")
environment["HOME"] = environment["MPLCONFIGDIR"] = os.environ["TEST_TMPDIR"]
command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-c", "/dev/null"]
# What goes wrong where nobody can catch it is a failure too.
command += ["-W", "error::pytest.PytestUnraisableExceptionWarning", "--tb=short"]
command += ["--rootdir", RUNFILES, f"--junitxml={os.environ['XML_OUTPUT_FILE']}"]
# Not in the folder that all sessions of a user share, each of which clears away what older ones left.
command += [f"--basetemp={os.environ['TEST_TMPDIR']}/pytest"]
os.chdir(RUNFILES)
os.execve(sys.executable, command + [os.path.join(RUNFILES, sys.argv[1])], environment)
