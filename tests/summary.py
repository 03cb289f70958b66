"""Counts test cases over several builds and prints one line for each build, then the total.

usage: summary.py <results folder>...

Each folder holds ctest.xml, written by ctest, and <entry>.xml for each entry that is a GoogleTest executable. An entry
without a file of its own (a script, or an executable that died before writing it) counts as one case.
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def count_cases(path):
    """Passed, failed and skipped cases in a GoogleTest file."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None:
            failed += 1
        elif case.get("result") == "completed":
            passed += 1
        else:
            skipped += 1
    return passed, failed, skipped


def count_entry(folder, entry):
    ok = entry.get("status") == "run"
    skipped = entry.get("status") in ("notrun", "disabled")
    path = folder / (entry.get("name") + ".xml")
    if skipped or not path.exists():
        return (0, 0, 1) if skipped else (1, 0, 0) if ok else (0, 1, 0)
    passed, failed, skipped = count_cases(path)
    # Every case passed and the process still failed: a leak, or a race, reported at its end.
    return passed, max(failed, 0 if ok else 1), skipped


def text(counts):
    passed, failed, skipped = counts
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def main(folders):
    total = [0, 0, 0]
    for folder in map(pathlib.Path, folders):
        counts = [0, 0, 0]
        try:
            entries = list(ElementTree.parse(folder / "ctest.xml").getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError) as error:
            print(f"{folder}: {error}")
            counts[1] = 1
            entries = []
        for entry in entries:
            counts = [a + b for a, b in zip(counts, count_entry(folder, entry))]
        print(f"{folder.parent.name}: {text(counts)}")
        total = [a + b for a, b in zip(total, counts)]
    print(text(total))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
