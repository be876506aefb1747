"""einsum() as a sequence of products of matrices."""

from __future__ import annotations

import math
import string
from typing import Any, Iterable, Union

import numpy as np

from kintsugi import _namespace
from kintsugi._exact import words_of_sums
from kintsugi._options import Multiply

Label = Union[str, int]  # a letter of the subscripts; or a dimension of the ellipsis, counted from its end: -1, -2, ...


def split_operands(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Returns subscripts and operands of einsum's arguments, which may be (operand, labels)... [output labels]."""
    if not operands:
        raise ValueError("einsum needs subscripts and an operand at least")
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    pairs = len(operands) // 2
    text = ",".join(_letters(labels) for labels in operands[1:2 * pairs:2])
    return text + ("->" + _letters(operands[-1]) if len(operands) % 2 else ""), list(operands[:2 * pairs:2])


def _letters(labels: Any) -> str:
    if not isinstance(labels, (list, tuple)):
        raise TypeError(f"{labels!r} is no list of labels, integers from 0 to 51 and Ellipsis")
    try:
        return "".join("..." if label is Ellipsis else string.ascii_letters[range(52)[label]] for label in labels)
    except (TypeError, IndexError):
        raise ValueError(f"{labels!r} has labels that are no integers from 0 to 51, nor Ellipsis") from None


def _labels(term: str, dimensions: int | None, subscripts: str) -> list[Label]:
    """Returns the labels of one term. dimensions: the operand's; None for the output, whose ellipsis stays one label 0."""
    before, dots, after = term.partition("...")
    for letter in before + after:
        if letter not in string.ascii_letters:
            raise ValueError(f"einsum subscripts {subscripts!r} have {letter!r} in {term!r}; accepted: letters, one ... a "
                             "term, commas and ->")
    if dimensions is None:
        return [*before, *([0] if dots else []), *after]
    hidden = dimensions - len(before + after)
    if hidden < 0 or (hidden > 0 and not dots):
        raise ValueError(f"einsum subscripts {term!r} are for an operand of {len(before + after)} dimensions, and it has "
                         f"{dimensions}")
    return [*before, *range(-hidden, 0), *after]


def parse(subscripts: str, operands: list[Any]) -> tuple[list[list[Label]], list[Label]]:
    """Returns the labels of every operand's dimensions and of the result's.

    Raises:
        ValueError: as numpy's einsum.
    """
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise ValueError(f"einsum subscripts {subscripts!r} are for {len(terms)} operands, and there are "
                         f"{len(operands)}")
    labels = [_labels(term, operand.ndim, subscripts) for term, operand in zip(terms, operands)]
    hidden = sorted({label for term in labels for label in term if isinstance(label, int)})
    letters = [label for term in labels for label in term if isinstance(label, str)]
    if not arrow:
        return labels, [*hidden, *sorted(label for label in set(letters) if letters.count(label) == 1)]
    wanted = _labels(output, None, subscripts)
    if hidden and 0 not in wanted:
        raise ValueError(f"einsum subscripts {subscripts!r} have no ... in the output for the dimensions of that of the "
                         "operands")
    result = [part for label in wanted for part in (hidden if label == 0 else [label])]
    for label in result:
        if isinstance(label, str) and (label not in letters or result.count(label) > 1):
            raise ValueError(f"einsum subscripts {subscripts!r} have {label!r} in the output " +
                             ("twice" if label in letters else "alone"))
    return labels, result


class Term:
    """An array, and one label for each of its dimensions."""

    def __init__(self, array: Any, labels: list[Label]):
        self.array = array
        self.labels = labels

    def size(self, labels: Iterable[Label]) -> int:
        return math.prod(self.array.shape[self.labels.index(label)] for label in labels)

    def grouped(self, *groups: list[Label]) -> Any:
        """Returns the array with the dimensions of each group flattened into one; the groups have all labels."""
        order = [self.labels.index(label) for group in groups for label in group]
        return self.array.transpose(order).reshape([self.size(group) for group in groups])


def sizes_of(terms: list[Term]) -> dict[Label, int]:
    """Returns the size of every label. A dimension of 1 fits any.

    Raises:
        ValueError: sizes that do not fit.
    """
    sizes: dict[Label, int] = {}
    for term in terms:
        for label, size in zip(term.labels, term.array.shape):
            known = sizes.setdefault(label, size)
            if known != size and 1 not in (known, size):
                name = label if isinstance(label, str) else "..."
                raise ValueError(f"einsum: label {name} has the sizes {known} and {size}")
            sizes[label] = size if known == 1 else known
    return sizes


def _diagonal(term: Term) -> Term:
    """Returns a view without repeated labels."""
    labels = list(dict.fromkeys(term.labels))
    if len(labels) == len(term.labels):
        return term
    for label, size in zip(term.labels, term.array.shape):
        first = term.array.shape[term.labels.index(label)]
        if size != first:
            raise ValueError(f"einsum: label {label} of one operand has the sizes {first} and {size}")
    numbers = [labels.index(label) for label in term.labels]
    view = _namespace.namespace(term.array).einsum(term.array, numbers, list(range(len(labels))))
    return Term(view, labels)


def _without_broadcast(term: Term, sizes: dict[Label, int]) -> Term:
    """Returns a view without the dimensions of 1 that are broadcast to larger ones."""
    cut = tuple(0 if size == 1 and sizes[label] != 1 else slice(None)
                for label, size in zip(term.labels, term.array.shape))
    return Term(term.array[cut], [label for label, part in zip(term.labels, cut) if part != 0])


def _sum(multiply: Multiply, term: Term, kept: list[Label]) -> Term:
    """Returns the sums over the labels that are not kept."""
    summed = [label for label in term.labels if label not in kept]
    if not summed:
        return term
    kept = [label for label in term.labels if label in kept]
    rows = term.grouped(kept, summed)
    sums = multiply(rows, _namespace.ones(rows, rows.shape[1])[:, None])
    return Term(sums.reshape([term.size([label]) for label in kept]), kept)


def _addends(multiply: Multiply, term: Term, kept: list[Label]) -> list[Term]:
    """Returns terms whose sum is that of the term over the labels that are not kept: one, or, for exact products, as
    many as are needed for it to be exact. Returns the term itself where a sum is not finite."""
    summed = [label for label in term.labels if label not in kept]
    if not multiply.is_exact or not summed:
        return [_sum(multiply, term, kept)]
    kept = [label for label in term.labels if label in kept]
    words = words_of_sums(term.grouped(kept, summed))
    if words is None:
        return [term]
    return [Term(word.reshape([term.size([label]) for label in kept]), kept) for word in words]


def _with_labels(term: Term, labels: list[Label], sizes: dict[Label, int]) -> Term:
    """Returns the term broadcast along labels that it lacks."""
    missing = [label for label in labels if label not in term.labels]
    if not missing:
        return term
    shape = [sizes[label] for label in missing] + list(term.array.shape)
    return Term(_namespace.namespace(term.array).broadcast_to(term.array, shape), missing + term.labels)


def contract(multiply: Multiply, first: Term, second: Term, kept: list[Label]) -> Term:
    """Returns the contraction of two terms over the labels that are not kept."""
    sizes = sizes_of([first, second])
    lefts = _addends(multiply, first, kept + second.labels)
    rights = _addends(multiply, second, kept + first.labels)
    left, right = lefts[0], rights[0]
    both = [label for label in left.labels if label in right.labels]
    inner = [label for label in sizes if label not in kept and label in left.labels + right.labels]
    batch = [label for label in both if label in kept]
    rows = [label for label in left.labels if label in kept and label not in both]
    columns = [label for label in right.labels if label in kept and label not in both]
    labels = batch + rows + columns
    shape = [sizes[label] for label in labels]
    if not inner and len(lefts) * len(rights) == 1:
        if left.array.dtype.kind != "c" or multiply.allows_complex_elementwise:
            a, b = left.grouped(batch, rows), right.grouped(batch, columns)
            return Term((a[:, :, None] * b[:, None, :]).reshape(shape), labels)
    pairs = [(a, b) for a in lefts for b in rights]
    a = _side_by_side([_with_labels(a, inner, sizes).grouped(batch, rows, inner) for a, _ in pairs], 2)
    b = _side_by_side([_with_labels(b, inner, sizes).grouped(batch, inner, columns) for _, b in pairs], 1)
    return Term(multiply(a, b).reshape(shape), labels)


def _side_by_side(arrays: list[Any], axis: int) -> Any:
    return arrays[0] if len(arrays) == 1 else _namespace.joined(arrays, axis)


def path_of(terms: list[Term], output: list[Label], optimize: Any) -> list[tuple[int, ...]]:
    """Returns numpy's path: the positions of the operands that every step contracts."""
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    labels = dict.fromkeys(label for term in terms for label in term.labels)
    numbers = {label: number for number, label in enumerate(labels)}
    described: list[Any] = []
    for term in terms:
        described += [np.broadcast_to(np.empty(()), term.array.shape), [numbers[label] for label in term.labels]]
    path: list[Any] = np.einsum_path(*described, [numbers[label] for label in output], optimize=optimize)[0]
    return path[1:]


def contract_all(multiply: Multiply, terms: list[Term], output: list[Label], optimize: Any) -> Any:
    """Returns the array of a contraction."""
    sizes = sizes_of(terms)
    terms = [_without_broadcast(_diagonal(term), sizes) for term in terms]
    for step in path_of(terms, output, optimize):
        chosen = [terms[position] for position in sorted(step)]
        terms = [term for position, term in enumerate(terms) if position not in step]
        while len(chosen) > 1:
            first, second, *chosen = chosen
            kept = output + [label for term in terms + chosen for label in term.labels]
            chosen.insert(0, contract(multiply, first, second, kept))
        terms += chosen
    result = _with_labels(_sum(multiply, terms[0], output), output, sizes)
    return result.array.transpose([result.labels.index(label) for label in output])
