"""Errors and warnings of the package."""

from __future__ import annotations

from typing import Any


def _new(kind: type[KintsugiError], *arguments: Any) -> KintsugiError:
    return kind.__new__(kind, *arguments)


class KintsugiError(Exception):
    """A call that failed. C is unchanged. The message contains the wrong values.

    Attributes:
        status: the library's name of the failure, such as "invalid_argument" or "contract_unreachable".
    """

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes unpickling work without __init__. BaseException would call it with its `args`, which has only the message,
        but __init__ takes (status, message)."""
        return _new, (type(self), *self.args), self.__dict__


class MissingEngineWarning(RuntimeWarning):
    """Warning that a faster engine cannot run here. Products are right but may take many times as long."""
