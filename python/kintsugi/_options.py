"""The keywords that all products have, for functions that hand them on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kintsugi import _accuracy
from kintsugi._accuracy import Accuracy, Policy
from kintsugi._matmul import matmul

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class Options(TypedDict, total=False):
        accuracy: Accuracy | None
        scheme: str | None
        engine: str | None
        policy: Policy | None
        threads: int | None
        workspace_limit: int | str | None


class Multiply:
    """kintsugi.matmul() with fixed options."""

    def __init__(self, options: Options):
        self.options = options
        scheme, given = options.get("scheme"), options.get("accuracy")
        self._accuracy = _accuracy.chosen(given, scheme, None)[0]
        self.is_exact = self._accuracy == "exact"
        # Elementwise products of real numbers are correctly rounded; complex ones keep the types' accuracies.
        self.allows_complex_elementwise = self._accuracy in (None, "fp32", "fp64") and scheme is None

    def __call__(self, a: Any, b: Any, out: Any = None) -> Any:
        return matmul(a, b, out=out, **self.options)
