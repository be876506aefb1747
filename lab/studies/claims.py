#!/usr/bin/env python3
"""The index of all claims: lab/results/claims.md from the registry (claims.json) and what the studies measured, and
judgements by hand beside the verdicts."""

import argparse
import json
import pathlib
import random
import re
import sys

import recorded
import registry
from hopper import fp64, programs, sgemm
from hopper.results import Results
from hopper.text import EMPTY, table, wrapped

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
DEVICES = RESULTS.parents[1] / "docs" / "results"
TO_DEVICES = "../../docs/results"  # from the page
COUNTED, BUILT, OWN = "paper", "by construction", "own"
PAPERS = ("fp16-emulation-study", "h2sgemm", "le-gemm", "mixpert", "dgemm-tc")
INDEPENDENT = """\
The judge is an eighth reader who had the papers, the criteria and what was measured alone, without reasons (seed 90217). He shares all verdicts, of which \
an entry's `decided` fixes those that nothing here decides, and has doubts about 59 criteria (`log/2026-12-01-seventh-reader.md`). Where types or panels that a sentence \
takes together are series and not alternatives, study-three-terms, h2sgemm-fig8-hgemm and h2sgemm-fig8-gain would disagree; nothing was changed, since the rows are known.

The seventh (seed 52817) shared 56 of 60 by the criteria that he had: he found MixPert's averages (mixpert-average, mixpert-average-cutlass) and mixpert-sparkler undecided, \
and dgemm-tc-k-slices decided. Criteria changed by his doubts: the averages are open, with their rows known; mixpert-sparkler is judged by mixpert-4, whose row was known; \
dgemm-tc-k-slices by fixed accuracies, before they were measured. Of his 15 further doubts those that were right changed wordings.

The sixth (seed 71993) shared 59 of 60 by the criteria before. Of the 165 claims that were registered then, 82 are decided (79 before); 26 are new, chosen where \
a model or printed figures can decide them (`log/2026-12-01-averages-over-sizes.md`). Rows of n = 64 to 1024 of LE-GEMM's averages and of the study at \
k = 1024 were known when those criteria changed; new seeds and sizes judge them.

The fifth (seed 40961) shared 56 of 60 verdicts by the criteria before. They changed then by his doubts, for 23 of his sixty and 21 other claims. \
Their rows were known, but for those that were measured afterwards: the Ascend's sums in Figs. 8 and 9, MixPert's \
average, le-gemm's sizes on the MI210 and its applications beside OpenBLAS, and CR mode at the paper's lengths. One reading of \
mixpert-average, which would have left it undecided, was dropped with its rows known, since section 3.3.3 has tiles of 32. Of all his sixty verdicts 55 were alike after that; he \
judged le-gemm-max-ooto-mi210, le-gemm-mred-mark-mi210, le-gemm-ooto-mark, mixpert-average and mixpert-hpl-valid otherwise by the earlier criteria.

What changed: strict words have strict criteria, figures count to both \
sides, speeds are similar within 20 %, programs at sizes that the paper states and that are not here decide nothing, and a "may" is not refuted by a \
sample. In Figs. 8 and 9 of h2sgemm each input, each order of the cube's sums and each place where they leave it is an alternative, SGEMM is \
OpenBLAS's, and HGEMM's 1e-4 is half an order to both sides.

Earlier readers judged by earlier criteria: 50 of 60, 38 of 45, 45 of 47 and 54 of 60 alike; [claims-judged.json](claims-judged.json) has the last \
three samples too. One reading was dropped when its rows were known: mixpert-cutlass with sums inside the unit, since CUTLASS's source adds \
outside. Doubts that change no verdict: a factor of 10 to both sides counts more accuracy than SGEMM's as a miss of "equivalent" \
(dgemm-tc-fig8-sp); sizes of le-gemm's Fig. 10 end at n = 1024, and single sizes stand for its averages; 65.3 TFLOP/s is one of the two rates by \
which the simulation that predicts it is \
judged; f stays above 0.92 with 512 Ki elements of L1 alone, where section 3.3.1 has 512 KB (h2sgemm-fusion, h2sgemm-l1).
"""
PAGES = {"hopper-sgemm": sgemm, "hopper-fp64": fp64, "hopper-programs": programs}
EXAMPLE = """examples:
  lab/studies/claims.py --write
  lab/studies/claims.py --sample 40 --seed 1
  lab/studies/claims.py --compare lab/results/claims-judged.json"""


class Judged:
    """Every claim with its verdict and why, what was measured, and the pages that show the studies."""

    def __init__(self, claims, reproduction, results):
        self.claims = claims
        self.pages = {name: f"{TO_DEVICES}/{name}.md" for name in PAGES} | {
            figure["name"]: f"accuracy.md#{anchor(figure)}" for figure in reproduction["figures"]}
        self.measured = {finding.id: finding.measured for page in PAGES.values() for finding in page.findings(results)}
        self.measured |= measured_by_program(reproduction)
        self.verdicts = {name: registry.judge(claim, self.measured.get(name, {})) for name, claim in claims.items()}

    def of(self, kind, paper=None, verdict=None):
        """Names of claims."""
        return [name for name, claim in self.claims.items() if claim["kind"] == kind
                and paper in (None, claim["source"]["paper"]) and verdict in (None, self.verdicts[name][0])]

    def count(self, verdict, paper=None):
        return len(self.of(COUNTED, paper, verdict))


def anchor(figure):
    """Returns the anchor of a figure's headline, as Markdown viewers make it."""
    return re.sub(r"[^\w\- ]", "", f"{figure['name']}: {figure['subject']}".lower()).replace(" ", "-")


def measured_by_program(reproduction):
    return {claim["id"]: {series["series"]: [registry.number_of(value) for value in series["values"]]
                          for series in claim["measured"]}
            for figure in reproduction["figures"] for claim in figure["claims"]}


# ---------------------------------------------------------------- the page

def page_of(judged, claim):
    study = claim["study"]
    return EMPTY if study is None else f"[{study}]({judged.pages[study]})"


def lines_of(judged, names):
    def line(name):
        claim = judged.claims[name]
        return [f"`{name}`", f"{claim['source']['paper']}, {claim['source']['place']}", claim["claim"],
                f"**{judged.verdicts[name][0]}**", page_of(judged, claim)]
    return table(["claim", "source", "", "verdict", "page"], map(line, names))


def counts_table(judged):
    rows = [[paper, *(judged.count(verdict, paper) for verdict in registry.VERDICTS), len(judged.of(COUNTED, paper))]
            for paper in PAPERS]
    rows.append(["all", *(judged.count(verdict) for verdict in registry.VERDICTS), len(judged.of(COUNTED))])
    return table(["paper", *registry.VERDICTS, "claims"], rows)


def by_figures(judged):
    """Says how many of the decided claims only show that the papers' figures fit together."""
    names = [name for verdict in (registry.AGREES, registry.DISAGREES) for name in judged.of(COUNTED, verdict=verdict)
             if judged.claims[name]["decided"] == "by the paper's figures"]
    return f", {len(names)} of them only by whether figures that the papers print fit together" if names else ""


def is_unmeasured(judged, name):
    return judged.claims[name]["study"] is None and judged.verdicts[name][0] == registry.NOT_MEASURED


def rules_text(rules):
    text = ""
    for title, name in (("Verdicts", "verdicts"), ("What is decided", "decided"), ("Kinds", "kinds"), ("Words", "words")):
        text += f"{title}:\n\n" + "".join(f"- {word}: {meaning}\n" for word, meaning in rules[name].items()) + "\n"
    return text


def judged_again(judged, hand):
    if not hand:
        return "Nobody judged a sample by hand yet."
    same, others = compared(judged, hand)
    text = f"{same} of {len(hand['judged'])} claims of a random sample (seed {hand['seed']}) were judged alike by " \
           f"{hand['by']} from the papers' texts and the registered criteria, {100 * same / len(hand['judged']):.0f} %"
    return text + ("." if not others else "; not " + ", ".join(f"`{name}`" for name in others) + ".")


def page(judged, rules, hand):
    decided = judged.count(registry.AGREES) + judged.count(registry.DISAGREES)
    text = "# The papers' claims, and what came out here\n\n"
    text += f"Of {len(judged.of(COUNTED))} claims of five papers on accuracy and speed {decided} can be decided here: " \
            f"{judged.count(registry.AGREES)} agree and {judged.count(registry.DISAGREES)} disagree{by_figures(judged)}. " \
            f"Not decided, but {judged.count(registry.PREDICTED)} are predicted and {judged.count(registry.ELSEWHERE)} hold on " \
            f"another chip. {judged.count(registry.UNDECIDED)} cannot be decided here; " \
            f"{judged.count(registry.NOT_MEASURED) or 'none'} nobody measured.\n\n"
    text += counts_table(judged) + "\n"
    text += "Made by `lab/studies/claims.py --write` from [claims.json](claims.json), which has every claim with its source, " \
            "quantity, inputs, accumulator or hardware, criterion and tolerance, and from what the studies measured: " \
            f"[reproduction.json.xz](reproduction.json.xz) of `kintsugi-lab reproduce` and the files in [hopper]({TO_DEVICES}/hopper). " \
            "Not to be edited by hand. Criteria were committed before verdicts were computed by them; a change of one is a change of " \
            "claims.json and shows in its history.\n\n"
    text += "What was measured, reasons and explanations stand in [accuracy.md](accuracy.md), " \
            f"[hopper-sgemm.md]({TO_DEVICES}/hopper-sgemm.md), [hopper-fp64.md]({TO_DEVICES}/hopper-fp64.md) and " \
            f"[hopper-programs.md]({TO_DEVICES}/hopper-programs.md).\n\n## Rules\n\n" + rules_text(rules)
    text += "## Judged by hand\n\n" + judged_again(judged, hand)
    text += " To repeat it: `lab/studies/claims.py --sample 40 --seed N " \
            "> judged.json` writes claims with their criteria and measured values, without verdicts; fill in each " \
            "`verdict` from the paper's text, and `lab/studies/claims.py --compare judged.json` gives the share.\n\n"
    text += INDEPENDENT + "\n"
    for paper in PAPERS:
        names = [name for name in judged.of(COUNTED, paper) if not is_unmeasured(judged, name)]
        text += f"## {paper}\n\n" + lines_of(judged, names) + "\n"
    text += "## Why claims are open\n\n" + open_table(judged) + "\n"
    if any(is_unmeasured(judged, name) for name in judged.of(COUNTED)):
        text += "## Claims that nobody measured\n\n" + unmeasured_table(judged) + "\n"
    text += "## Not counted: true by construction\n\n" + lines_of(judged, judged.of(BUILT))
    text += "\n## Not counted: our own\n\n" + lines_of(judged, judged.of(OWN))
    return wrapped(text.rstrip("\n") + "\n")


def why_open(judged, name):
    """Why a claim is not decided: the registry's sentence, else the judgement's first one."""
    return judged.claims[name]["reason"] or judged.verdicts[name][1].split(". ")[0] + "."


def open_table(judged):
    names = [name for verdict in (registry.PREDICTED, registry.ELSEWHERE, registry.UNDECIDED)
             for name in judged.of(COUNTED, verdict=verdict)]
    return table(["claim", "verdict", "why it is open"],
                 [[f"`{name}`", judged.verdicts[name][0], why_open(judged, name)] for name in sorted(names, key=list(judged.claims).index)])


def unmeasured_table(judged):
    names = [name for name in judged.of(COUNTED) if is_unmeasured(judged, name)]
    return table(["claim", "source", "", "stated", "why"], [
        [f"`{name}`", f"{claim['source']['paper']}, {claim['source']['place']}", claim["claim"], claim["stated"],
         claim["reason"].removeprefix("Nobody measured it: ")] for name in names for claim in [judged.claims[name]]])


# ---------------------------------------------------------------- judgements by hand

def sample(judged, count, seed):
    """Claims as a judge needs them, of those that a study serves."""
    names = [name for name in judged.of(COUNTED) if judged.claims[name]["study"] is not None]
    chosen = random.Random(seed).sample(names, min(count, len(names)))
    return {"by": "", "seed": seed, "judged": [{**judged.claims[name], "measured": judged.measured.get(name, {}), "verdict": ""}
                                     for name in sorted(chosen, key=names.index)]}


def compared(judged, hand):
    """Returns how many are alike, and the others' names."""
    others = []
    for claim in hand["judged"]:
        if claim["id"] not in judged.claims:
            sys.exit(f"claims: there is no claim {claim['id']!r} in claims.json")
        if claim["verdict"] not in registry.VERDICTS:
            sys.exit(f"claims: {claim['id']}: the verdict {claim['verdict']!r} is none of {', '.join(registry.VERDICTS)}")
        others += [] if claim["verdict"] == judged.verdicts[claim["id"]][0] else [claim["id"]]
    return len(hand["judged"]) - len(others), others


def parse_words():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--json", action="store_true", help="print every claim's verdict and why as JSON")
    parser.add_argument("--sample", type=int, metavar="N", help="print N random claims without verdicts as JSON")
    parser.add_argument("--seed", type=int, default=1, help="of the sample [1]")
    parser.add_argument("--compare", type=pathlib.Path, metavar="FILE", help="judgements by hand beside the verdicts")
    parser.add_argument("--registry", type=pathlib.Path, default=registry.FILE, help="[lab/results/claims.json]")
    parser.add_argument("--reproduction", type=pathlib.Path, default=RESULTS / "reproduction.json.xz",
                        help="of kintsugi-lab reproduce all --json [lab/results/reproduction.json.xz]")
    parser.add_argument("--hopper", type=pathlib.Path, default=DEVICES / "hopper", help="[docs/results/hopper]")
    parser.add_argument("--judged", type=pathlib.Path, default=RESULTS / "claims-judged.json",
                        help="judgements by hand that the page names [lab/results/claims-judged.json]")
    parser.add_argument("--page", type=pathlib.Path, default=RESULTS / "claims.md", help="[lab/results/claims.md]")
    words = parser.parse_args()
    if not (words.write or words.json or words.sample or words.compare):
        parser.error("nothing to do: --write, --json, --sample or --compare")
    return words


def main():
    words = parse_words()
    results = Results(words.hopper, DEVICES / "gpu" / "nvidia-h200.json")
    judged = Judged(registry.load(words.registry), recorded.read(words.reproduction), results)
    if words.sample:
        print(json.dumps(sample(judged, words.sample, words.seed), indent=1, ensure_ascii=False))
    if words.json:
        print(json.dumps({name: dict(zip(("verdict", "why"), verdict)) for name, verdict in judged.verdicts.items()}, indent=1))
    if words.compare:
        hand = recorded.read(words.compare)
        same, others = compared(judged, hand)
        print(f"{same} of {len(hand['judged'])} alike" + "".join(f"\n  {name}: {judged.verdicts[name][0]}" for name in others))
    if words.write:
        hand = recorded.read(words.judged) if words.judged.exists() else None
        words.page.write_text(page(judged, recorded.read(words.registry)["rules"], hand))


if __name__ == "__main__":
    main()
