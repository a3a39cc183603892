#!/usr/bin/env python3
"""Counts what a test run did, from the records it left, and ends with `N passed, N failed`.

    tests/report.py FOLDER

    tests/report.py --unbuilt FOLDER/PHASE.events.json

FOLDER holds for each phase PHASE.code, the exit code of what ran, and either PHASE.events.json, what Bazel tells about
its build, or PHASE.log, with lines that begin with PASS, FAIL or SKIP. What failed to build, crashed or ran out of time
counts as failed; so does a phase in which nothing ran and which does not say why. Where PHASE.again.events.json is there,
it tells of a second attempt at what did not build, and stands for the first. --unbuilt prints what did not build.
"""

import glob
import json
import os
import sys
import urllib.parse
import xml.etree.ElementTree as xml


class Count:
    def __init__(self):
        self.passed = 0
        self.skipped = []
        self.failed = []


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
    for label in sorted(results):
        count_results(label, results[label], count)
    count.failed += [f"{label} (does not build)" for label in sorted(unbuilt)]


def count_log(path, count):
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("PASS "):
                count.passed += 1
            elif line.startswith("FAIL "):
                count.failed.append(line[5:].strip())
            elif line.startswith("SKIP "):
                count.skipped.append(line[5:].strip())


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
    if code != 0 and not count.failed:
        count.failed.append(f"{phase} (ended with code {code})")
    if not count.passed and not count.failed and not count.skipped:
        count.failed.append(f"{phase} (nothing ran)")
    return count


def main():
    if sys.argv[1] == "--unbuilt":
        print("\n".join(sorted(read_events(sys.argv[2])[1])))
        return 0
    folder = sys.argv[1]
    codes = sorted(glob.glob(os.path.join(folder, "*.code")), key=os.path.getmtime)
    total = Count()
    for code in codes:
        phase = os.path.basename(code)[: -len(".code")]
        count = count_phase(folder, phase)
        print(f"{phase}: {count.passed} passed, {len(count.failed)} failed, {len(count.skipped)} skipped")
        total.passed += count.passed
        total.failed += [f"{phase}: {name}" for name in count.failed]
        total.skipped += [f"{phase}: {name}" for name in count.skipped]
    for name in total.skipped:
        print(f"skipped  {name}")
    for name in total.failed:
        print(f"FAILED   {name}")
    print(f"{total.passed} passed, {len(total.failed)} failed")
    return 0 if total.passed and not total.failed else 1


if __name__ == "__main__":
    sys.exit(main())
