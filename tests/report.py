#!/usr/bin/env python3
"""Counts what a test run did, from the records it left, and ends with `N passed, N failed`.

    tests/report.py FOLDER

    tests/report.py --unbuilt FOLDER/PHASE.events.json
    tests/report.py --failed FOLDER

FOLDER holds for each phase PHASE.code, the exit code of what ran, and either PHASE.events.json, what Bazel tells about
its build, or PHASE.log, with lines that begin with PASS, FAIL or SKIP. What failed to build, crashed or ran out of time
counts as failed; so does a phase in which nothing ran and which does not say why. Where PHASE.again.events.json is there,
it tells of a second attempt at what did not build, and stands for the first. --unbuilt prints what did not build.

PHASE.alone.events.json or PHASE.alone.log tells how the test programs that failed went when they ran again, alone: one
that passed each time there is not counted as failed, but named as unstable. --failed prints which are to run so, `PHASE
LABEL`, or `PHASE` where it has no labels: none where many have failed, since that is no accident of a busy machine.
"""

import glob
import json
import os
import sys
import urllib.parse
import xml.etree.ElementTree as xml


# More failed test programs than this are not tried alone.
ALONE_MAX = 4


class Count:
    def __init__(self):
        self.passed = 0
        self.skipped = []
        self.failed = []
        self.unstable = []


def count_cases(path, label, count):
    """Adds the cases of one test.xml; returns whether a failed one was among them."""
    failed = False
    for case in xml.parse(path).getroot().iter("testcase"):
        name = f"{label} {case.get('classname', '')}.{case.get('name', '')}"
        if case.get("status") == "notrun":
            continue
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed.append(name)
            failed = True
        elif case.find("skipped") is not None or case.get("result") == "skipped":
            count.skipped.append(name)
        else:
            count.passed += 1
    return failed


def xml_of(result):
    for output in result.get("testActionOutput", []):
        if output["name"] == "test.xml":
            return urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
    return None


def count_results(label, results, count):
    """Adds what one test target did in all its runs."""
    failed = False
    for result in results:
        path = xml_of(result)
        if path is not None and os.path.exists(path):
            failed |= count_cases(path, label, count)
    statuses = {result.get("status", "NO_STATUS") for result in results}
    if statuses != {"PASSED"} and not failed:
        count.failed.append(f"{label} ({', '.join(sorted(statuses))})")


def read_events(path):
    """What Bazel reported: {label: test results}, and the targets that did not build."""
    results = {}
    unbuilt = set()
    with open(path, encoding="utf-8") as file:
        events = [json.loads(line) for line in file if line.strip()]
    for event in events:
        identity = event["id"]
        if "testResult" in identity:
            results.setdefault(identity["testResult"]["label"], []).append(event.get("testResult", {}))
        for kind in ("targetCompleted", "targetConfigured", "unconfiguredLabel"):
            if kind in identity:
                done = event.get("completed", {}).get("success", False) or "configured" in event
                skipped = event.get("aborted", {}).get("reason") == "SKIPPED"
                if not done and not skipped:
                    unbuilt.add(identity[kind]["label"])
    return results, unbuilt - set(results)


def count_events(folder, phase, count):
    """Adds the test results, and what did not build at the last attempt."""
    results, unbuilt = read_events(os.path.join(folder, phase + ".events.json"))
    again = os.path.join(folder, phase + ".again.events.json")
    if os.path.exists(again):
        later, still = read_events(again)
        results.update(later)
        for label in sorted(unbuilt - still):
            print(f"{phase}: {label} was built at the second attempt")
        unbuilt = still
    alone = runs_alone(folder, phase)
    for label in sorted(results):
        first = Count()
        count_results(label, results[label], first)
        if first.failed and label in alone:
            count.unstable += first.failed
            first = Count()
            count_results(label, alone[label][:1], first)
        add(count, first)
    count.failed += [f"{label} (does not build)" for label in sorted(unbuilt)]


def add(count, more):
    count.passed += more.passed
    count.skipped += more.skipped
    count.failed += more.failed


def failures(results):
    count = Count()
    count_results("", results, count)
    return count.failed


def runs_alone(folder, phase):
    """{label: results} of the programs that passed each time when they ran alone."""
    path = os.path.join(folder, phase + ".alone.events.json")
    if not os.path.exists(path):
        return {}
    return {label: results for label, results in read_events(path)[0].items() if not failures(results)}


def failed_programs(folder, phase):
    """The labels of the test programs that failed; the empty name where a phase without labels did."""
    path = os.path.join(folder, phase + ".events.json")
    if os.path.exists(path):
        return [label for label, results in sorted(read_events(path)[0].items()) if failures(results)]
    return [""] if count_phase(folder, phase).failed else []


def count_log(path, count):
    count_lines(path, count)
    alone = path[: -len("log")] + "alone.log"
    if not count.failed or not os.path.exists(alone):
        return
    later = Count()
    passed = count_lines(alone, later)
    if passed.issuperset(count.failed) and not later.failed:
        count.passed += len(count.failed)
        count.failed, count.unstable = [], count.failed


def count_lines(path, count):
    """Returns the names of those that passed."""
    passed = set()
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("PASS "):
                count.passed += 1
                passed.add(line[5:].strip())
            elif line.startswith("FAIL "):
                count.failed.append(line[5:].strip())
            elif line.startswith("SKIP "):
                count.skipped.append(line[5:].strip())
    return passed


def count_phase(folder, phase):
    count = Count()
    events = os.path.join(folder, phase + ".events.json")
    log = os.path.join(folder, phase + ".log")
    if os.path.exists(events):
        count_events(folder, phase, count)
    elif os.path.exists(log):
        count_log(log, count)
    with open(os.path.join(folder, phase + ".code"), encoding="utf-8") as file:
        code = int(file.read())
    if code != 0 and not count.failed and not count.unstable:
        count.failed.append(f"{phase} (ended with code {code})")
    if not count.passed and not count.failed and not count.skipped:
        count.failed.append(f"{phase} (nothing ran)")
    return count


def phases_of(folder):
    codes = sorted(glob.glob(os.path.join(folder, "*.code")), key=os.path.getmtime)
    return [os.path.basename(code)[: -len(".code")] for code in codes]


def main():
    if sys.argv[1] == "--unbuilt":
        print("\n".join(sorted(read_events(sys.argv[2])[1])))
        return 0
    if sys.argv[1] == "--failed":
        programs = [f"{phase} {label}".strip() for phase in phases_of(sys.argv[2])
                    for label in failed_programs(sys.argv[2], phase)]
        print("\n".join(programs if len(programs) <= ALONE_MAX else []))
        return 0
    folder = sys.argv[1]
    total = Count()
    for phase in phases_of(folder):
        count = count_phase(folder, phase)
        print(f"{phase}: {count.passed} passed, {len(count.failed)} failed, {len(count.skipped)} skipped")
        total.passed += count.passed
        total.failed += [f"{phase}: {name}" for name in count.failed]
        total.skipped += [f"{phase}: {name}" for name in count.skipped]
        total.unstable += [f"{phase}: {name}" for name in count.unstable]
    for name in total.skipped:
        print(f"skipped  {name}")
    for name in total.unstable:
        print(f"unstable {name}: failed beside others, passed each time alone")
    for name in total.failed:
        print(f"FAILED   {name}")
    print(f"{total.passed} passed, {len(total.failed)} failed")
    return 0 if total.passed and not total.failed else 1


if __name__ == "__main__":
    sys.exit(main())
