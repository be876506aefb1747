"""The registered claims (claims.json) and verdicts by their criteria, as lab/reproduce/claims.cpp has them."""

import json
import pathlib

FILE = pathlib.Path(__file__).resolve().parents[1] / "results" / "claims.json"
VERDICTS = ("agrees", "disagrees", "predicted", "holds on another chip", "cannot be decided here", "not measured")
AGREES, DISAGREES, PREDICTED, ELSEWHERE, UNDECIDED, NOT_MEASURED = VERDICTS
# What evidence that is not of the paper's chip gives a claim that meets its criteria; one that misses them stays undecided.
WEAKER = {"by prediction": PREDICTED, "on another chip": ELSEWHERE}
VALUES_IN_WORDS = 6
NAMES_IN_WORDS = 4

FORMS = {
    "at_most": lambda value, limit: value <= limit,
    "at_least": lambda value, limit: value >= limit,
    "less_than": lambda value, limit: value < limit,
    "more_than": lambda value, limit: value > limit,
    "equals": lambda value, value_: value == value_,
    "between": lambda value, low, high: low <= value <= high,
    "within_factor": lambda value, of, factor: of / factor <= value <= of * factor,
}


def load(file=FILE):
    """{id: claim}, in the registry's order."""
    document = json.loads(pathlib.Path(file).read_text())
    if document["format"] != "kintsugi.claims" or document["format_version"] != 1:
        raise ValueError(f"{file}: format {document['format']} version {document['format_version']}; this reads "
                         "kintsugi.claims version 1")
    return {claim["id"]: claim for claim in document["claims"]}


def rises(values, tolerance):
    largest = values[0]
    for value in values:
        if value < (1 - tolerance) * largest:
            return False
        largest = max(largest, value)
    return values[-1] > values[0]


def meets(criterion, values):
    """Returns True if values, one at least, meet a criterion of the registry's forms."""
    form = criterion["form"]
    if form == "rising":
        return rises(values, criterion["tolerance"])
    if form == "steady":
        return max(values) <= (1 + criterion["tolerance"]) * min(values)
    limits = [number for name, number in criterion.items() if name != "form"]
    return all(FORMS[form](value, *limits) for value in values)


def judge(claim, measured):
    """The verdict and why, of {series: values}; a series without values, or with None, was not measured."""
    names = [series["name"] for series in claim["series"]]
    if unlisted := [name for name in measured if name not in names]:
        raise ValueError(f"claim {claim['id']} has no series {unlisted[0]!r}; it has {', '.join(map(repr, names))}")
    if claim["decided"] == "nowhere":
        return UNDECIDED, claim["reason"]
    if claim["study"] is None:
        return NOT_MEASURED, claim["reason"]
    held, missed = {}, []
    for series in claim["series"]:
        values = measured.get(series["name"])
        if not values or None in values:
            return NOT_MEASURED, f"There is no value of \"{series['name']}\"."
        meets_it = meets(series.get("criterion", claim["criterion"]), values)
        missed += [] if meets_it else [series["name"]]
        alternative = series.get("alternative", "")
        held[alternative] = held.get(alternative, True) and meets_it
    verdict, why = by_alternatives(held, missed)
    if claim["decided"] not in WEAKER:
        return verdict, why
    return (WEAKER[claim["decided"]], claim["reason"]) if verdict == AGREES else (UNDECIDED, f"{claim['reason']} {why}")


def by_alternatives(held, missed):
    if all(held.values()):
        return AGREES, ""
    more = f" and {len(missed) - NAMES_IN_WORDS} more" if len(missed) > NAMES_IN_WORDS else ""
    misses = f"Misses the criterion: {'; '.join(missed[:NAMES_IN_WORDS])}{more}."
    if not any(held.values()):
        return DISAGREES, misses
    return UNDECIDED, f"{sum(held.values())} of {len(held)} alternatives meet the criterion, and the paper does not say " \
                      f"which is its own. {misses}"


def measured_text(measured):
    """The values in words, by series; "" where there are none."""
    def text(values):
        if len(values) <= VALUES_IN_WORDS:
            return ", ".join(f"{value:.3g}" for value in values)
        return f"{min(values):.3g} to {max(values):.3g}"
    return "; ".join(f"{name}: {text(values)}" for name, values in measured.items() if values and None not in values)


def criterion_text(criterion):
    form, *limits = criterion.values()
    words = {"at_most": "at most {:.4g}", "at_least": "at least {:.4g}", "less_than": "less than {:.4g}",
             "more_than": "more than {:.4g}", "equals": "exactly {:.4g}", "between": "{:.4g} to {:.4g}",
             "within_factor": "{:.4g} within a factor of {:.4g}", "rising": "rising, tolerance {:.2g}",
             "steady": "steady within {:.2g}"}
    return words[form].format(*limits)


def number_of(written):
    """Returns what the program writes for a number: a word where it is not finite."""
    return float(written)
