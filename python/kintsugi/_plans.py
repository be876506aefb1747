"""Plans. A plan describes how a product is computed. It is made once and may run any number of times."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Dict

import numpy as np

from kintsugi import _accuracy, _core, _torch
from kintsugi._accuracy import Accuracy, Policy
from kintsugi._arrays import TYPES, common_type
from kintsugi._products import Product, describe, make_product
from kintsugi._tensors import device_context


class Plan(Dict[str, Any]):
    """The library's description of a product's plan (docs/schema/plan.schema.json). Calling the object runs the plan.

    str() puts the description in words. A plan is immutable; any number of threads may call one. Every call has a
    workspace of its own of plan["workspace_bytes"] bytes, which the library allocates or, for tensors on a device,
    their library (torch or CuPy).
    The first call of a copy or of an unpickled object makes the plan again, from its description.
    """

    def __init__(self, description: dict[str, Any], plan: Any = None):
        super().__init__(description)
        self._plan = plan  # the library's; None in a copy, until its first call

    def __call__(self, a: Any, b: Any, *, alpha: Any = 1, beta: Any = 0, out: Any = None) -> Any:
        """Returns alpha * a @ b + beta * out, as matmul() does with the options of the plan.

        Args:
            a, b, out: operands with the plan's shapes, element types, memory (host or device) and strides. Arrays
                with other strides are accepted if matmul() would copy them, since BLAS cannot address them.
            alpha, beta: numbers of the operands' type.

        Raises:
            ValueError: an operand or out does not fit the plan; the message says what differs.
            KintsugiError, TypeError: as matmul().
        """
        if self._plan is None:
            self._plan = _core.read_plan(json.dumps(self))
        result = _core.execute(self._plan, a, b, alpha, beta, out)
        if result is not NotImplemented:
            return result
        product = make_product(a, b, alpha, beta, out)
        _check_fits(_core.plan_problem(self._plan), product)
        with product.current():
            result = product.run(self._plan)
        return result if out is None else _torch.give_back(out, result)

    def __str__(self) -> str:
        return "\n".join(self["words"])

    def __repr__(self) -> str:
        problem = self["problem"]
        schemes = ", ".join(candidate["scheme"] for candidate in self["candidates"])
        return (f"<kintsugi plan: {problem['m']} x {problem['k']} by {problem['k']} x {problem['n']}, batch of "
                f"{problem['batch_count']}, {problem['type']}, {problem['memory']}: {schemes} on {self['engine']}, "
                f"{self['workspace_bytes']} bytes of workspace>")

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan, (dict(self),)


# Words for the numbers of a problem's members.
_WORDS: dict[str, tuple[str, ...]] = {
    "type": (*map(str, TYPES), "double-double"),
    "op": ("N", "T"),
    "layout": ("column major", "row major"),
    "memory": ("on the CPU", "on a device"),
    "batch_kind": ("one stride", "any strides"),
}


def _value_text(member: str, value: int) -> str:
    """Returns the value of a problem's member for messages, as a word if there is one."""
    words = _WORDS.get(member) or _WORDS.get(member.rpartition("_")[0], ())
    return words[value] if value < len(words) else str(value)


def _check_fits(planned: dict[str, int], product: Product) -> None:
    """Raises ValueError, with all differences, unless the product has the plan's problem. The layout of a prepared operand
    may differ."""
    ignored = {"prepared_a", "prepared_b", "adds_to_c", "native_elsewhere"}
    for side, operand in (("a", product.a), ("b", product.b)):
        if operand.prepared is not None:
            ignored |= {f"ld{side}", f"stride_{side}", f"op_{side}"}
    different = [f"{name} is {_value_text(name, product.problem[name])} and the plan has {_value_text(name, wanted)}"
                 for name, wanted in planned.items() if name not in ignored and product.problem[name] != wanted]
    if different:
        raise ValueError(f"the plan is not for this product: {'; '.join(different)}. Shapes, element types, place and "
                         "memory layout of a, b and out are those that a plan was made for")


def _example(x: Any, dtype: Any, name: str) -> Any:
    """Returns an array of the shape x if x is a shape, else x itself."""
    if not isinstance(x, tuple) or not all(isinstance(length, int) for length in x):
        return x
    if dtype is None:
        raise TypeError(f"{name} is the shape {x} and dtype is not given")
    common_type([np.dtype(dtype)], "dtype")
    return np.empty(x, dtype)


def plan(a: Any, b: Any, *, dtype: Any = None, out: Any = None, accuracy: Accuracy | None = None,
         scheme: str | None = None, engine: str | None = None, policy: Policy | None = None,
         threads: int | None = None, workspace_limit: int | str | None = None) -> Plan:
    """Returns a plan for products of operands like these. It is called as plan(a, b) or plan(a, b, out=c).

    Args:
        a, b: what matmul() takes, of which shape, element type, place and memory layout count; or shapes, tuples of
            integers, of arrays on the CPU in C order.
        dtype: the element type of shapes; float32, float64, complex64 or complex128.
        out: None: results are in C order; else an array of the shape and layout that every out will have.
        accuracy, scheme, engine, policy, threads, workspace_limit: as of matmul().

    Returns:
        The plan; matmul() with these arguments has the same bits.

    Raises:
        KintsugiError, TypeError, ValueError: as matmul(); TypeError for a shape without dtype.
    """
    accuracy, policy = _accuracy.chosen(accuracy, scheme, policy)
    product = make_product(_example(a, dtype, "a"), _example(b, dtype, "b"), 1, 0, out)
    with product.current():
        made = product.plan(accuracy, scheme, engine, policy, threads, workspace_limit)
        return Plan(describe(made), made)


def explain(a: Any, b: Any, *, accuracy: Accuracy | None = None, scheme: str | None = None,
            engine: str | None = None, policy: Policy | None = None,
            threads: int | None = None, workspace_limit: int | str | None = None) -> Plan:
    """Returns the plan that matmul() would make with these arguments, without multiplying. Raises the errors of matmul()."""
    accuracy, policy = _accuracy.chosen(accuracy, scheme, policy)
    product = make_product(a, b, 1, 0, None)
    with product.current():
        made = product.plan(accuracy, scheme, engine, policy, threads, workspace_limit)
        return Plan(describe(made), made)


def last_plan() -> Plan | None:
    """Returns the plan of this thread's last product; None before the first product. A product of plain operands keeps no
    plan; a plan is then made for the same problem and options, with the current settings."""
    last = _core.last()
    if isinstance(last, tuple):
        problem, options, device = last
        with contextlib.nullcontext() if device < 0 else device_context(device):
            last = _core.plan(problem, options)
        _core.set_last(last)
    return None if last is None else Plan(describe(last), last)
