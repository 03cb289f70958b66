"""Times work by PyTorch and ONNX Runtime on request: a line in, a line of JSON out (README.md)."""

import json
import os
import sys
import time


SLOW = 0.4  # seconds


def reset_peak():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def status(field):
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(field)


class Server:
    def __init__(self):
        self.libraries = {}
        self.absent = {}
        self.prepared = None  # (words, function)
        self.slow = False  # to be run no more often than needed

    def info(self, threads):
        threads = int(threads)
        for name in ("torch", "onnxruntime"):
            try:
                module = __import__(name + "_cases")
                self.libraries[name] = module.open(threads)
            except Exception as e:  # whatever is wrong with an installation
                self.absent[name] = f"{type(e).__name__}: {e}"
        versions = {name: library.version for name, library in self.libraries.items()}
        return {"versions": versions, "threads": threads, "absent": self.absent}

    def prepare(self, words):
        if self.prepared is None or self.prepared[0] != words:
            self.prepared = None
            library, case, *arguments = words
            f = self.libraries[library].make(case, arguments)
            f()
            start = time.perf_counter()
            f()
            self.slow = time.perf_counter() - start > SLOW
            self.prepared = (words, f)
        return self.prepared[1]

    def time(self, seconds, *words):
        f = self.prepare(words)
        if not self.slow:
            f()
        times, end = [], time.perf_counter() + float(seconds)
        while True:
            start = time.perf_counter()
            f()
            stop = time.perf_counter()
            times.append(stop - start)
            if stop > end or len(times) >= 1000:
                return {"times": times}

    def memory(self, *words):
        # What a library loads at its first use is no part of the work.
        library, case, *arguments = words
        self.libraries[library].warm()
        reset_peak()
        before = status("VmRSS")
        f = self.libraries[library].make(case, arguments)
        for _ in range(4):
            f()
        return {"bytes": status("VmHWM") - before}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    server = Server()
    for line in sys.stdin:
        verb, *words = line.split()
        try:
            answer = getattr(server, verb)(*words)
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


main()
