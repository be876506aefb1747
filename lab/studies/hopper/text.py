"""Pieces of a page: tables, claims beside what was found, and what stands above all."""

import dataclasses
import textwrap

import registry
from hopper.cases import CASES

EMPTY = "–"
LAB = "../../lab/results"  # from the pages
CLAIMS = registry.load()


def number(value, digits=3, unit=1.0):
    return EMPTY if value is None else f"{value * unit:.{digits}g}" if abs(value * unit) < 1000 else f"{value * unit:.0f}"


def tera(rate):
    return number(rate, 4, 1e-12)


def times(ratio):
    return EMPTY if ratio is None else f"{ratio:.2f}"


def percent(share):
    return EMPTY if share is None else f"{100 * share:.1f} %"


def microseconds(seconds):
    return EMPTY if seconds is None else f"{1e6 * seconds:.1f}" if seconds < 1e-3 else f"{1e6 * seconds:.0f}"


def over(one, other):
    return None if one is None or other is None else one / other


def mean(values):
    """None where one of them is missing."""
    values = list(values)
    return None if not values or any(value is None for value in values) else sum(values) / len(values)


def wrapped(page):
    """Prose in lines of 120 columns; tables, pictures, headlines and commands as they are."""
    def lines(line):
        indent = "  " if line.startswith("- ") else ""
        return line if line[:1] in ("|", "#", "!", " ") else textwrap.fill(
            line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(lines, page.split("\n")))


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def listed(numbers, form=times):
    return ", ".join(map(form, numbers))


@dataclasses.dataclass
class Finding:
    """The values measured for a claim of the registry."""
    id: str
    measured: dict  # {series: values}; values that were not measured are None
    words: str = ""  # instead of the values
    explanation: str = ""  # of what was found, where that is no agreement

    def here(self):
        return self.words or registry.measured_text(self.measured) or EMPTY

    def judged(self):
        """The verdict and why."""
        verdict, why = registry.judge(CLAIMS[self.id], self.measured)
        return verdict, f"{why} {self.explanation}".strip() if verdict != registry.AGREES else ""


def one(value):
    """Returns a series with one value, or None for no value."""
    return None if value is None else [value]


def claims(found):
    rows, reasons = [], {}
    for finding in found:
        claim = CLAIMS[finding.id]
        verdict, why = finding.judged()
        kind = "" if claim["kind"] == "paper" else f" ({claim['kind']})"
        rows.append([f"`{finding.id}`", claim["claim"] + kind, claim["stated"], finding.here(), f"**{verdict}**"])
        if why:
            reasons.setdefault(why, []).append(f"`{finding.id}`")
    reasons = [f"- {', '.join(names)}: {why}\n" for why, names in reasons.items()]
    return table(["claim", "", "paper", "here", "verdict"], rows) + ("\n" + "".join(reasons) if reasons else "")


def section(title, question, results, cases, body):
    """A question, the commands that answer it, and the answer; of cases that were not run it says so."""
    text = f"## {title}\n\n{question}\n\n"
    text += "".join(f"    {CASES[name].text()}\n" for name in cases) + ("\n" if cases else "")
    missing = [name for name in cases if name not in results.documents]
    if missing:
        text += f"Not measured: {', '.join(missing)}.\n\n"
    return text + body.strip("\n") + "\n\n" if len(missing) < len(cases) or not cases else text


def pictures(results, name, *patterns):
    """Those that were drawn from a set of files."""
    files = [file for pattern in patterns for file in sorted((results.folder / name).glob(pattern))]
    return "".join(f"\n![{file.stem}](hopper/{name}/{file.name})\n" for file in files)


def head(title, part, results):
    text = (f"# {title}\n\nMade by `lab/studies/hopper_studies.py --write --program build/kintsugi-lab` from the files in [hopper](hopper); not to "
            "be edited by hand.\n")
    documents = results.heads(part)
    if not documents:
        return text + "Nothing of it was measured.\n\n"
    first = documents[0]
    device = first["device"]
    engine = next(row["engine_details"] for row in first["rows"] if row["engine"] == "cuda")
    text += (f"{device['name']}, at most {number(device['power_limit_watts'], 4)} W and "
             f"{number(device['clock_limit_mhz'], 4)} MHz; {'; '.join(engine.split('; ')[1:])}; Kintsugi "
             f"{first['version']}, commit {', '.join(results.commits(part))}.\n\n"
             "Operands and C lie in the device's memory; every result is held against the exact product before it is "
             "timed. A rate is 2mnk (complex: 8mnk) over the median of rounds, ranges, splits and recombination included; "
             "W and MHz are those of the last round. Rates of one command compare; from one to another the chip's "
             f"temperature changes them by some hundredths. {EMPTY}: not measured. Verdicts follow from the criteria of "
             f"[claims.json]({LAB}/claims.json); [claims.md]({LAB}/claims.md) has all claims. Our own claims are marked and not counted.\n\n")
    ceilings = next((document["ceilings"] for document in documents if document["ceilings"]), None)
    if ceilings is None:
        return text
    rows = [[name, tera(at["rate"]), number(at["power_watts"]), number(at["clock_mhz"], 4), at["way"]]
            for name, at in ceilings.items()]
    return text + "What the device does at most:\n\n" + table(["", "10^12 a second", "W", "MHz", "by"], rows) + "\n"
