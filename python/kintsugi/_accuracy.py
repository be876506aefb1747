"""The default accuracy of products, which accuracy() sets."""

from __future__ import annotations

import contextlib
import contextvars
from typing import Iterator, Literal, NamedTuple, Optional, Union

import numpy as np

from kintsugi import _core
from kintsugi._errors import KintsugiError

Accuracy = Union[Literal["fp32", "fp64", "dd", "exact", "reproducible"], float]
Policy = Literal["auto", "emulate", "native"]


class Defaults(NamedTuple):
    accuracy: Optional[Accuracy]
    policy: Optional[Policy]


_current: contextvars.ContextVar[Defaults | None] = contextvars.ContextVar("kintsugi.accuracy", default=None)
current = _current.get  # None outside of every accuracy()


def chosen(accuracy: Accuracy | None, scheme: str | None,
           policy: Policy | None) -> tuple[Accuracy | None, Policy | None]:
    """Returns accuracy and policy of a call with these arguments."""
    defaults = current()
    if defaults is None:
        return accuracy, policy
    if accuracy is None and scheme is None:
        accuracy = defaults.accuracy
    return accuracy, defaults.policy if policy is None else policy


def _check(accuracy: Accuracy | None, policy: Policy | None) -> None:
    """Raises KintsugiError, with the library's message, for a text that is no accuracy or no policy."""
    one = np.ones((1, 1))
    try:
        _core.plan(_core.problem(one, one, one, 1), (accuracy, None, None, policy, None, None))
    except KintsugiError as error:
        if error.status == "bad_setting":  # another failure depends on the operands, which are not known yet
            raise


@contextlib.contextmanager
def accuracy(accuracy: Accuracy | None, *, policy: Policy | None = None) -> Iterator[None]:
    """Sets the default accuracy of matmul(), matmul_dd(), prepare(), plan(), explain() and all of kintsugi.numpy, for a
    `with` statement or, as a decorator, for the calls of a function.

        >>> with kintsugi.accuracy("exact"):
        ...     c = kintsugi.matmul(a, b)

    Operators of torch.ops.kintsugi and routes of kintsugi.torch have kintsugi.torch.use() instead, and kintsugi.jax its
    argument alone: a compiled program would keep what was set when it was traced.

    An argument of a call wins: its accuracy or scheme over the default accuracy, its policy over the default policy.
    The innermost `with` counts; its end, by an exception too, restores what was before.

    The default is a context variable (contextvars), which costs a call 0.02 microseconds. It holds for the thread, or
    the task of asyncio, that entered the `with`. Tasks, and functions of asyncio.to_thread(), that start inside of it
    inherit it; other threads do not (those that Python 3.14 starts with -X thread_inherit_context do). A generator that
    yields inside of the `with` leaves the default set for its caller until it goes on. A decorated coroutine function
    or generator function only makes its object under the default: put the `with` into its body.

    Args:
        accuracy: as of matmul(); None: the type's own.
        policy: as of matmul(); None: that of the surrounding `with`.

    Raises:
        KintsugiError: if accuracy or policy is none.
    """
    _check(accuracy, policy)
    outer = current()
    if policy is None and outer is not None:
        policy = outer.policy
    token = _current.set(Defaults(accuracy, policy))
    try:
        yield
    finally:
        _current.reset(token)
