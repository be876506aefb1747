"""Plans. A plan describes how a product is computed. It is made once and may run any number of times."""

from __future__ import annotations

import contextlib
import ctypes
import json
from typing import Any, Literal

import numpy as np

from kintsugi import _abi, _compiled, _torch
from kintsugi._abi import library, this_thread
from kintsugi._arrays import TYPES
from kintsugi._calls import Call
from kintsugi._device_calls import make_call
from kintsugi._options import describe, make_options, make_plan
from kintsugi._tensors import device_context


class Plan(dict):
    """The library's description of a product's plan (docs/schema/plan.schema.json). Calling the object runs the plan.

    str() puts the description in words. A plan is immutable; any number of threads may call one. Every call has a
    workspace of its own of plan["workspace_bytes"] bytes, which the library allocates or, for tensors on a device,
    their library (torch or CuPy).
    The first call of a copy or of an unpickled object makes the plan again, from its description.
    """

    def __init__(self, description: dict[str, Any], owned: _abi.Owned | None = None):
        super().__init__(description)
        self._owned: _abi.Owned | None = None
        if owned is not None:
            self._keep(owned)

    def _keep(self, owned: _abi.Owned) -> _abi.Owned:
        """Stores the library's plan, and what the compiled path needs of it."""
        problem = _abi.Problem(struct_size=ctypes.sizeof(_abi.Problem))
        _abi.check(library.kintsugi_plan_problem(owned.pointer, ctypes.byref(problem)))
        problem.adds_to_c = problem.native_elsewhere = 0  # hints, which the compiled path does not set
        self._problem = bytes(problem)
        self._address = owned.pointer.value
        self._workspace_size = self["workspace_bytes"]
        self._owned = owned
        return owned

    def _make_again(self) -> _abi.Owned:
        return self._keep(_abi.Owned(library.kintsugi_plan_destroy, library.kintsugi_plan_read,
                                     this_thread.handle.pointer, json.dumps(self).encode(), None))

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
        owned = self._owned or self._make_again()
        result = _compiled.core.execute(this_thread.compiled, self._address, self._problem, self._workspace_size, a, b,
                                        alpha, beta, out)
        if result is NotImplemented:
            result = self._run_in_python(owned, a, b, alpha, beta, out)
        this_thread.plan = owned
        return result

    def _run_in_python(self, owned: _abi.Owned, a: Any, b: Any, alpha: Any, beta: Any, out: Any) -> Any:
        call = make_call(a, b, alpha, beta, out)
        _check_fits(_abi.Problem.from_buffer_copy(self._problem), call)
        with call.current():
            this_thread.note_plan(owned)
            result = call.run(owned)
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


_NAMES: dict[str, dict[int, str]] = {
    "type": {**{number: str(dtype) for dtype, number in TYPES.items()}, 4: "double-double"},
    "op": {_abi.OP_N: "N", _abi.OP_T: "T"},
    "layout": {_abi.COLUMN_MAJOR: "column major", _abi.ROW_MAJOR: "row major"},
    "memory": {_abi.HOST: "on the CPU", _abi.DEVICE: "on a device"},
    "batch_kind": {_abi.BATCH_STRIDED: "one stride", _abi.BATCH_POINTERS: "any strides"},
}


def _value_text(field: str, value: int) -> str:
    """Returns the value of a problem's field for messages, as a word if there is one."""
    names = _NAMES.get(field) or _NAMES.get(field.rpartition("_")[0], {})
    return names.get(value, str(value))


def _check_fits(planned: _abi.Problem, call: Call) -> None:
    """Raises ValueError, with all differences, unless the call has the plan's problem. The layout of a prepared operand may
    differ."""
    ignored = {"struct_size", "prepared_a", "prepared_b", "adds_to_c", "native_elsewhere"}
    for side, operand in (("a", call.a), ("b", call.b)):
        if operand.prepared is not None:
            ignored |= {f"ld{side}", f"stride_{side}", f"op_{side}"}
    names = [name for name, _ in _abi.Problem._fields_ if name not in ignored]
    pairs = [(name, getattr(call.problem, name), getattr(planned, name)) for name in names]
    different = [f"{name} is {_value_text(name, found)} and the plan has {_value_text(name, wanted)}"
                 for name, found, wanted in pairs if found != wanted]
    if different:
        raise ValueError(f"the plan is not for this product: {'; '.join(different)}. Shapes, element types, place and "
                         "memory layout of a, b and out are those that a plan was made for")


def _example(x: Any, dtype: Any, name: str) -> Any:
    """Returns an array of the shape x if x is a shape, else x itself."""
    if not isinstance(x, tuple) or not all(isinstance(length, int) for length in x):
        return x
    if dtype is None:
        raise TypeError(f"{name} is the shape {x} and dtype is not given")
    return np.empty(x, dtype)


def plan(a: Any, b: Any, *, dtype: Any = None, out: Any = None, accuracy: str | float | None = None,
         scheme: str | None = None, engine: str | None = None, policy: Literal["auto", "emulate", "native"] | None = None,
         threads: int | None = None, workspace_limit: int | None = None) -> Plan:
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
    call = make_call(_example(a, dtype, "a"), _example(b, dtype, "b"), 1, 0, out)
    with call.current():
        owned = call.plan(accuracy, scheme, engine, policy, threads, workspace_limit)
        return Plan(describe(owned), owned)


def explain(a: Any, b: Any, *, accuracy: str | float | None = None, scheme: str | None = None,
            engine: str | None = None, policy: Literal["auto", "emulate", "native"] | None = None,
            threads: int | None = None, workspace_limit: int | None = None) -> Plan:
    """Returns the plan that matmul() would make with these arguments, without multiplying. Raises the errors of matmul()."""
    call = make_call(a, b, 1, 0, None)
    with call.current():
        owned = call.plan(accuracy, scheme, engine, policy, threads, workspace_limit)
        return Plan(describe(owned), owned)


def last_plan() -> Plan | None:
    """Returns the plan of this thread's last product; None before the first product. A product on the compiled path keeps no
    plan; a plan is then made for the same problem and options, with the current settings."""
    last = _compiled.core.last(this_thread.compiled)
    if last is not None:
        problem, options, device = last
        with contextlib.nullcontext() if device < 0 else device_context(device):
            this_thread.note_plan(make_plan(_abi.Problem.from_buffer_copy(problem), make_options(*options), None))
    return None if this_thread.plan is None else Plan(describe(this_thread.plan), this_thread.plan)
