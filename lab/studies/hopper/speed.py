"""Text about speed that both pages have: rates by size, power, the policy auto, limits on workspace."""

from hopper.results import NATIVE, cube, size_of, value_of
from hopper.text import EMPTY, Finding, microseconds, number, over, percent, table, tera, times


def known(values):
    return [value for value in values if value is not None]


def rate_of(row):
    return tera(row["rate"])


def time_of(row):
    return microseconds(row["time"]["median"])


def rates(results, cases, names, shapes, form=rate_of):
    """Returns what `form` gives for every row, with the ratio to native in brackets."""
    def cell(name, shape):
        row = results.row(cases, name, shape)
        if row is None:
            return EMPTY
        ratio = None if name == NATIVE else row["ratios"].get(NATIVE)
        return form(row) + ("" if ratio is None else f" ({times(ratio)})")
    return [[size_of(shape), *(cell(name, shape) for name in names)] for shape in shapes]


def state(row):
    return EMPTY if row is None else f"{number(row['power_watts'])}, {number(row['clock_mhz'], 4)}"


def auto_claim(results, name, cases, sizes):
    ratios = {n: results.ratio(cases, "auto", cube(n)) for n in sizes}
    measured = {n: ratio for n, ratio in ratios.items() if ratio is not None}
    if not measured:
        return Finding(name, {})
    worst = min(measured, key=measured.get)
    taken = [str(n) for n in measured if value_of(results.row(cases, "auto", cube(n)), "scheme") != NATIVE]
    return Finding(name, {"squares": list(measured.values())},
                   f"at least {times(measured[worst])}, at n = {worst}; it emulates at n = {', '.join(taken) or 'none'}")


def workspace_table(results, free_case, limited_cases, names, n):
    lines = []
    for name in names:
        whole = results.row(free_case, name, cube(n))
        for case in limited_cases:
            row = results.row(case, name, cube(n))
            share = over(value_of(row, "workspace_bytes"), value_of(whole, "workspace_bytes"))
            lines.append([name, number(value_of(row, "workspace_bytes"), 4, 1e-6), percent(share),
                          percent(workspace_loss(results, free_case, case, name, n))])
    return table(["", "workspace, MB", "of the whole", "slower by"], lines)


def workspace_loss(results, free_case, case, name, n):
    """By ratios to native, which is in both runs."""
    ratio = over(results.ratio(free_case, name, cube(n)), results.ratio(case, name, cube(n)))
    return None if ratio is None else ratio - 1


def workspace_claim(results, claim, free_case, limited_cases, names, n):
    """Returns the finding on each program under the largest limit that takes half of its workspace away."""
    losses = {}
    for name in names:
        whole = value_of(results.row(free_case, name, cube(n)), "workspace_bytes")
        for case in limited_cases:
            share = over(value_of(results.row(case, name, cube(n)), "workspace_bytes"), whole)
            if share is not None and share <= 0.5:
                losses.setdefault(name, workspace_loss(results, free_case, case, name, n))
    return Finding(claim, {name: [loss] for name, loss in losses.items()},
                   ", ".join(f"{name} {percent(loss)}" for name, loss in losses.items()))
