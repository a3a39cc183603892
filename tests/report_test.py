#!/usr/bin/env python3
"""The count at the end of a run must not flatter: each way to fail is shown to it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

REPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.py")
PASSING = '<testcase classname="C" name="a" status="run" result="completed"/>'
FAILING = '<testcase classname="C" name="b" status="run" result="completed"><failure message="no"/></testcase>'
SKIPPED = '<testcase classname="C" name="c" status="run" result="skipped"><skipped message="why"/></testcase>'
DISABLED = '<testcase classname="C" name="DISABLED_d" status="notrun" result="suppressed"/>'


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def result(self, label, status, cases):
        path = self.write(label.strip("/").replace(":", "_") + ".xml", f"<testsuites><s>{cases}</s></testsuites>")
        output = [{"name": "test.xml", "uri": "file://" + path}]
        return {"id": {"testResult": {"label": label}}, "testResult": {"status": status, "testActionOutput": output}}

    def built(self, label, success):
        completed = {"completed": {"success": True}} if success else {"completed": {}}
        return {"id": {"targetCompleted": {"label": label}}, **completed}

    def last_line(self, events, code):
        """What the report says of one phase, and how it ends."""
        self.write("unit.events.json", "\n".join(json.dumps(event) for event in events))
        self.write("unit.code", str(code))
        done = subprocess.run([sys.executable, REPORT, self.folder], capture_output=True, text=True, check=False)
        return done.stdout.splitlines()[-1], done.returncode

    def test_passed_cases_are_counted_one_by_one(self):
        events = [self.built("//t:a", True), self.result("//t:a", "PASSED", PASSING * 3)]
        self.assertEqual(self.last_line(events, 0), ("3 passed, 0 failed", 0))

    def test_a_failed_case_is_counted_once_and_fails_the_run(self):
        events = [self.result("//t:a", "FAILED", PASSING + FAILING)]
        self.assertEqual(self.last_line(events, 3), ("1 passed, 1 failed", 1))

    def test_skipped_and_disabled_cases_count_as_neither(self):
        events = [self.result("//t:a", "PASSED", PASSING + SKIPPED + DISABLED)]
        self.assertEqual(self.last_line(events, 0), ("1 passed, 0 failed", 0))

    def test_a_crash_after_passing_cases_is_a_failure(self):
        events = [self.result("//t:a", "FAILED", PASSING)]
        self.assertEqual(self.last_line(events, 3), ("1 passed, 1 failed", 1))

    def test_a_test_out_of_time_is_a_failure(self):
        events = [{"id": {"testResult": {"label": "//t:a"}}, "testResult": {"status": "TIMEOUT"}}]
        self.assertEqual(self.last_line(events, 3), ("0 passed, 1 failed", 1))

    def test_what_does_not_build_is_a_failure_whether_a_test_or_not(self):
        events = [self.built("//t:a", False), self.built("//t:lib", False), self.result("//t:b", "PASSED", PASSING)]
        self.assertEqual(self.last_line(events, 1), ("1 passed, 2 failed", 1))

    def test_a_second_attempt_at_what_did_not_build_stands_for_the_first(self):
        again = [self.built("//t:a", True), self.result("//t:a", "PASSED", PASSING)]
        self.write("unit.again.events.json", "\n".join(json.dumps(event) for event in again))
        events = [self.built("//t:a", False), self.result("//t:b", "PASSED", PASSING)]
        self.assertEqual(self.last_line(events, 0), ("2 passed, 0 failed", 0))

    def alone(self, *results):
        """Writes what ran again, each under a name of its own, since the runs of a test have each their own record."""
        self.write("unit.alone.events.json", "\n".join(json.dumps(event) for event in results))

    def test_what_fails_beside_others_and_passes_each_time_alone_is_unstable(self):
        failed = self.result("//t:a", "FAILED", PASSING + FAILING)
        self.result("//t:b", "PASSED", PASSING * 2)
        self.alone(*[{**self.result("//t:b", "PASSED", PASSING * 2), "id": {"testResult": {"label": "//t:a"}}}] * 3)
        self.assertEqual(self.last_line([failed], 3), ("2 passed, 0 failed", 0))

    def test_what_fails_alone_once_of_three_times_has_failed(self):
        failed = self.result("//t:a", "FAILED", PASSING + FAILING)
        passed = self.result("//t:b", "PASSED", PASSING * 2)
        passed["id"] = failed["id"]
        self.alone(passed, failed, passed)
        self.assertEqual(self.last_line([failed], 3), ("1 passed, 1 failed", 1))

    def test_what_did_not_run_alone_has_failed(self):
        self.alone()
        self.assertEqual(self.last_line([self.result("//t:a", "FAILED", FAILING)], 3), ("0 passed, 1 failed", 1))

    def test_a_phase_of_lines_that_fails_again_has_failed(self):
        self.write("guest.log", "PASS a\nFAIL b\n")
        self.write("guest.code", "1")
        self.write("guest.alone.log", "PASS a\nFAIL c\n")
        done = subprocess.run([sys.executable, REPORT, self.folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed")
        self.write("guest.alone.log", "PASS c\n")
        done = subprocess.run([sys.executable, REPORT, self.folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed")
        self.write("guest.alone.log", "PASS b\nPASS c\n")
        done = subprocess.run([sys.executable, REPORT, self.folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 0 failed")
        self.assertIn("unstable guest: b", done.stdout)

    def to_run_alone(self, count):
        events = [self.result(f"//t:{index}", "FAILED", FAILING) for index in range(count)]
        self.write("unit.events.json", "\n".join(json.dumps(event) for event in events))
        self.write("unit.code", "3")
        done = subprocess.run(
            [sys.executable, REPORT, "--failed", self.folder], capture_output=True, text=True, check=False)
        return done.stdout.split("\n")[:-1]

    def test_few_failures_run_again_alone_and_many_do_not(self):
        self.assertEqual(self.to_run_alone(4), [f"unit //t:{index}" for index in range(4)])
        self.assertEqual(self.to_run_alone(5), [""])

    def test_a_second_attempt_hides_neither_failed_tests_nor_what_still_does_not_build(self):
        again = [self.built("//t:a", False), self.built("//t:c", True), self.result("//t:c", "FAILED", FAILING)]
        self.write("unit.again.events.json", "\n".join(json.dumps(event) for event in again))
        unbuilt = [self.built("//t:a", False), self.built("//t:c", False)]
        self.assertEqual(self.last_line([*unbuilt, self.result("//t:b", "FAILED", FAILING)], 1), ("0 passed, 3 failed", 1))

    def test_what_did_not_build_is_listed_for_a_second_attempt(self):
        events = [self.built("//t:a", False), self.built("//t:b", True), self.built("//t:lib", False)]
        path = self.write("unit.events.json", "\n".join(json.dumps(event) for event in events))
        done = subprocess.run([sys.executable, REPORT, "--unbuilt", path], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.split(), ["//t:a", "//t:lib"])

    def test_a_bad_end_without_a_failed_test_is_a_failure(self):
        events = [self.result("//t:a", "PASSED", PASSING)]
        self.assertEqual(self.last_line(events, 37), ("1 passed, 1 failed", 1))

    def test_a_phase_in_which_nothing_ran_is_a_failure(self):
        self.assertEqual(self.last_line([], 0), ("0 passed, 1 failed", 1))

    def test_a_phase_that_says_why_it_cannot_run_counts_as_neither(self):
        self.write("guest.log", "SKIP guest: qemu cannot be installed\n")
        self.write("guest.code", "0")
        events = [self.result("//t:a", "PASSED", PASSING)]
        self.assertEqual(self.last_line(events, 0), ("1 passed, 0 failed", 0))

    def test_lines_of_a_log_are_counted_where_bazel_had_no_part(self):
        self.write("tidy.log", "PASS one\nnoise PASS\nFAIL two\n  detail\n")
        self.write("tidy.code", "1")
        events = [self.result("//t:a", "PASSED", PASSING)]
        self.assertEqual(self.last_line(events, 0), ("2 passed, 1 failed", 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
