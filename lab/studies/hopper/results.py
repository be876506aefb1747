"""The measurements: the files of a folder, and the timings of ./test gpu beside them."""

import re

import recorded
from hopper.cases import CASES

NATIVE = "native"
# Dense FP16 products a second that an H200 does by its data sheet.
FP16_PEAK = 989e12
# Rates of one run scatter by so much at the power limit.
NOISE = 0.05


class Results:
    def __init__(self, folder, gpu_file):
        self.folder = folder
        self.documents = {name: recorded.read(file) for name in CASES if (file := recorded.file_of(folder, name))}
        gpu = recorded.read(gpu_file)
        self.gpu_date = gpu["date"][:10]
        self.timings = {case["name"]: case["output"] for case in gpu["cases"] if case["part"] == "timings"
                        and case["passed"]}

    def rows(self, case):
        return self.documents[case]["rows"] if case in self.documents else []

    def row(self, cases, name, shape):
        """The row of a candidate or baseline, in the first of the cases that has it; None: it was not measured."""
        for case in [cases] if isinstance(cases, str) else cases:
            for row in self.rows(case):
                if row["name"] == name and tuple(row["problem"][size] for size in "mnk") == shape:
                    return row
        return None

    def rate(self, cases, name, shape):
        return value_of(self.row(cases, name, shape), "rate")

    def ratio(self, cases, name, shape, to=NATIVE):
        row = self.row(cases, name, shape)
        return None if row is None else row["ratios"].get(to)

    def heads(self, part):
        """Documents of kintsugi bench of that part."""
        return [self.documents[name] for name, case in CASES.items()
                if case.part == part and name in self.documents and "ceilings" in self.documents[name]]

    def commits(self, part):
        """Returns the commits of kintsugi that wrote the documents of the part."""
        return sorted({self.documents[name]["commit"] for name, case in CASES.items()
                       if case.part == part and "commit" in self.documents.get(name, {})})

    def ceiling(self, part, name):
        for document in self.heads(part):
            if document["ceilings"] is not None:
                return document["ceilings"][name]["rate"]
        return None

    # The programs that measure, as ./test gpu ran them: microseconds, or None.
    def split_time(self, scheme, n):
        return self.timed("split_rate", rf"{re.escape(scheme)} +{n} A and B, one call +([\d.]+)")

    def step_time(self, step):
        return self.timed("recombine_rate", rf"{re.escape(step)} +([\d.]+) us")

    def byte_time(self, scheme, n):
        """The better of the tiles."""
        pattern = rf"{re.escape(scheme)} +{n} x {n} x {n}, tile \d +([\d.]+) us"
        return min(map(float, re.findall(pattern, self.timings.get("byte_rate", ""))), default=None)

    def timed(self, program, pattern):
        found = re.search("^" + pattern, self.timings.get(program, ""), re.MULTILINE)
        return None if found is None else float(found[1])


def value_of(row, *path):
    for name in path:
        row = None if row is None else row.get(name)
    return row


def cube(n):
    return (n, n, n)


def size_of(shape):
    return " x ".join(map(str, shape))
