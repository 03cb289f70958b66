"""Counts the instructions of a fixed piece of work, stage by stage, and fails when one takes over 10 % more than the
repository says: `instructions_test.py PROGRAM`. With --update it writes what it counts."""
import os, re, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

STAGES = ["model", "trace", "schedule", "lower"]
COUNTS = os.path.join(os.path.dirname(__file__), "counts.txt")
ALLOWED = 1.10


def count(program, stage):
  command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", program, stage]
  # Fixed addresses and an empty environment, so that hashes of addresses are the same in every run; one core, so that
  # there are no threads to compile with.
  core = sorted(os.sched_getaffinity(0))[STAGES.index(stage) % len(os.sched_getaffinity(0))]
  done = subprocess.run(["setarch", "--addr-no-randomize", *command], capture_output=True, text=True,
                        env={"PATH": os.environ.get("PATH", "")}, preexec_fn=lambda: os.sched_setaffinity(0, [core]))
  found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
  if done.returncode or not found: sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
  return int(found[1].replace(",", ""))


def main():
  update = "--update" in sys.argv
  program = next(a for a in sys.argv[1:] if not a.startswith("--"))
  with ThreadPoolExecutor() as pool: totals = list(pool.map(lambda s: count(program, s), STAGES))
  counts = {stage: totals[i] - (totals[i - 1] if i else 0) for i, stage in enumerate(STAGES)}
  if update:
    with open(COUNTS, "w") as f: f.writelines(f"{stage} {n}\n" for stage, n in counts.items())
  expected = {stage: int(n) for stage, n in (line.split() for line in open(COUNTS))}
  assert list(expected) == STAGES, f"{COUNTS} has other stages"
  worse = [s for s in STAGES if counts[s] > expected[s] * ALLOWED]
  for s in STAGES: print(f"{s:10} {counts[s]:>13,} instructions, {counts[s] / expected[s] - 1:+.1%}")
  if worse: sys.exit(f"more instructions than {COUNTS} allows: {', '.join(worse)}")
  if any(counts[s] < expected[s] / ALLOWED for s in STAGES): print("fewer than before: keep them, with --update")


main()
