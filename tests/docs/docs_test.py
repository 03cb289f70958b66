"""Checks that docs/layout.md shows what the example prints, block by block and in order. Usage: docs_test.py <example_add>"""

import os
import pathlib
import re
import subprocess
import sys

page = pathlib.Path(__file__).parents[2] / "docs" / "layout.md"
environment = dict(os.environ, DEV="INTERP", DEBUG="5", CACHE="1", SPEC="1")
run = subprocess.run([sys.argv[1]], env=environment, capture_output=True, text=True, timeout=100)
if run.returncode:
    sys.exit(f"{sys.argv[1]} ended with {run.returncode}:\n{run.stderr}")
at = 0
for block in re.findall(r"```text\n(.*?)```", page.read_text(), re.S):
    found = run.stderr.find(block, at)
    if found < 0:
        sys.exit(f"{page} shows what is not printed (any more):\n{block}\nPrinted:\n{run.stderr}")
    at = found + len(block)
if run.stdout.split() != ["11", "22", "33"]:
    sys.exit(f"the sum is wrong: {run.stdout}")
print("1 passed, 0 failed")
