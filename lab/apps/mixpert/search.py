"""Search of the cheapest level of every site within a limit on the program's error (MixPert, section 3.4)."""

import itertools

from mixpert.sites import Sites


class Trials:
    """Runs a program with given levels, and remembers time, error and time of the sites of each."""

    def __init__(self, program, reference, repeats):
        self.program, self.reference, self.repeats = program, reference, repeats
        self.steps = {}

    def __call__(self, levels):
        key = tuple(levels)
        if key not in self.steps:
            self.steps[key] = self.measure(dict(zip(self.program.sites, key)))
        return self.steps[key]

    def measure(self, levels, default="native"):
        device, program = self.program.device, self.program
        sites = Sites(device, levels, default, profile=True)
        error = program.error(program.run(sites), self.reference)
        seconds = [device.timed(lambda: program.run(Sites(device, levels, default)))[0] for _ in range(self.repeats)]
        return {"levels": levels or default, "seconds": min(seconds), "error": error, "sites": sites.seconds,
                "calls": sites.calls, "held": error <= program.limit}


def greedy(trials, levels):
    """The fastest trial that held, found with at most a quarter of all combinations of levels, most accurate first.

    First the paper's descent; then exchanges of a level between two sites from the fastest trial on.
    """
    budget = len(levels)**len(trials.program.sites) // 4

    def run(numbers):
        return trials(levels[number] for number in numbers)

    best = numbers = None
    for found in descend(trials.program.sites, run, len(levels) - 1):
        if best is None or (run(found)["held"] and run(found)["seconds"] < best["seconds"]):
            best, numbers = run(found), found
    improved = True
    while improved:
        improved = False
        for candidate in exchanges(numbers, len(levels) - 1):
            if len(trials.steps) >= budget and tuple(levels[number] for number in candidate) not in trials.steps:
                continue
            trial = run(candidate)
            if trial["held"] and trial["seconds"] < best["seconds"]:
                best, numbers, improved = trial, candidate, True
                break
    return best


def descend(sites, run, last):
    """Yields each accepted step of section 3.4: for every site the number of its level, 0 the most accurate.

    The site that takes most time is lowered; where that breaks the limit, the site before it is raised if it takes less
    time, else the step is taken back. Steps that hold the limit are accepted even if they are slower, since the next
    level may be faster.
    """
    current, open_sites = [0] * len(sites), set(range(len(sites)))
    step = run(current)
    yield list(current)
    while open_sites:
        site = max(open_sites, key=lambda i: step["sites"].get(sites[i], 0))
        before, lowered = site - 1, [*current[:site], current[site] + 1, *current[site + 1:]]
        trial = run(lowered)
        if not trial["held"] and before >= 0 and lowered[before] > 0 and step["sites"].get(
                sites[before], 0) < step["sites"].get(sites[site], 0):
            lowered[before] -= 1
            trial = run(lowered)
        if not trial["held"]:
            open_sites.discard(site)
            continue
        current, step = lowered, trial
        yield list(current)
        open_sites -= {i for i in open_sites if current[i] == last}


def exchanges(numbers, last):
    """Neighbours of these levels: one site lowered by a level, or lowered by up to two while another is raised by up to
    two, then one site alone at the most accurate level."""
    count = range(len(numbers))
    for down, by in itertools.product(count, (1, 2)):
        if numbers[down] + by > last:
            continue
        lowered = [*numbers[:down], numbers[down] + by, *numbers[down + 1:]]
        yield lowered
        for up, back in itertools.product(count, (1, 2)):
            if up != down and lowered[up] >= back:
                yield [*lowered[:up], lowered[up] - back, *lowered[up + 1:]]
    for site in count:
        if numbers[site] > 0:
            yield [*numbers[:site], 0, *numbers[site + 1:]]


def exhaustive(trials, levels):
    """The fastest of all combinations that holds."""
    steps = [trials(chosen) for chosen in itertools.product(levels, repeat=len(trials.program.sites))]
    return min((step for step in steps if step["held"]), key=lambda step: step["seconds"])
