"""Products of numpy arrays, and of tensors on a CUDA device."""

from __future__ import annotations

from typing import Any, Literal

from kintsugi import _abi, _compiled, _torch
from kintsugi._abi import library, this_thread
from kintsugi._device_calls import make_call
from kintsugi._pairs import PairCall, pair_scalar


def matmul(a: Any, b: Any, *, accuracy: str | float | None = None, scheme: str | None = None,
           engine: str | None = None, policy: Literal["auto", "emulate", "native"] | None = None, alpha: Any = 1,
           beta: Any = 0, out: Any = None, threads: int | None = None, workspace_limit: int | None = None) -> Any:
    """Returns alpha * a @ b + beta * out.

    Args:
        a: (..., m, k), or (k,) for one row; on the CPU an array, a nested list, a tensor of torch, whatever has
            DLPack, or a Prepared; or all operands are on one CUDA device: tensors of torch or CuPy, in whose current
            stream the product is put, or arrays of any library with DLPack, of which it is complete when this returns.
        b: (..., k, n), or (k,) for one column. Leading dimensions are a batch and broadcast as numpy's.
        accuracy: "fp32", "fp64", "dd", "exact", "reproducible" or a tolerance such as 1e-10, relative to
            (|a| @ |b|); None: the type's own.
        scheme: a name of schemes(), with parameters as in "ozaki2:moduli=20". It is an error if that scheme cannot run
            here, or cannot give an accuracy that is set too.
        engine: a name of engines(); None: the fastest.
        policy: "auto", "emulate" or "native".
        alpha, beta: numbers of the operands' type.
        out: where the result goes, (..., m, n) of the operands' type; needed where beta is not 0.
        threads: 0 or None: as many as OpenMP offers.
        workspace_limit: at most this many bytes of workspace. C is then computed in smaller blocks, with the same bits.

    Returns:
        The result, (..., m, n) without the dimension that a vector does not have; out itself where it was given.
        For tensors it is one of the same library, or a DeviceArray (with __dlpack__) if that library takes none; on the
        CPU one of torch if a or b is. Inputs whose rows or columns have unit stride (C or Fortran order, transposes,
        slices of them) are not copied; lazy conjugates and negatives of torch are.

    Raises:
        KintsugiError: what the library refuses, with its message; out is untouched.
        TypeError: an element type that it does not multiply, a masked array, or a tensor that requires a gradient.
        ValueError: shapes that do not fit, or an out that cannot take the result.

    Warns:
        MissingEngineWarning: once a process, where there is no BLAS for the engine "cpu".
    """
    result = _compiled.core.multiply(this_thread.compiled, a, b, alpha, beta, out, accuracy, scheme, engine, policy,
                                     threads, workspace_limit)
    if result is not NotImplemented:
        return result
    call = make_call(a, b, alpha, beta, out)
    with call.current():
        plan = call.plan(accuracy, scheme, engine, policy, threads, workspace_limit)
        this_thread.note_plan(plan)
        result = call.run(plan)
    return result if out is None else _torch.give_back(out, result)


def matmul_dd(a: Any, b: Any, *, accuracy: str | float | None = None, scheme: str | None = None,
              engine: str | None = None, policy: Literal["auto", "emulate", "native"] | None = None, alpha: Any = 1,
              beta: Any = 0, out: Any = None, threads: int | None = None,
              workspace_limit: int | None = None) -> Any:
    """Returns alpha * a @ b + beta * out of double-double numbers, which have some 106 significant bits in two float64
    words.

    Args:
        a: (..., m, k, 2) or (k, 2) of float64, on the CPU: hi and lo of every number along the last axis. Any two
            finite words count as their sum. Where hi and lo stand beside each other, what matmul does not copy is not
            copied.
        b: (..., k, n, 2) or (k, 2).
        accuracy: "dd", "exact" or a tolerance such as 1e-25, relative to (|a| @ |b|); None: "dd".
        alpha, beta: numbers, or pairs (hi, lo).
        out: (..., m, n, 2) of float64 for the result; needed where beta is not 0.
        scheme, engine, policy, threads, workspace_limit: as of matmul().

    Returns:
        (..., m, n, 2): hi, the number rounded to float64, and lo, what that leaves; out itself where it was given. A
        tensor of torch where a or b is one.

    Raises:
        KintsugiError, TypeError, ValueError: as matmul().
    """
    call = PairCall(*(_torch.as_stored(x, name) for name, x in (("a", a), ("b", b))), pair_scalar(alpha, "alpha"),
                     pair_scalar(beta, "beta"), _torch.as_stored(out, "out"))
    plan = call.plan(accuracy, scheme, engine, policy, threads, workspace_limit)
    this_thread.note_plan(plan)
    result = call.run(plan)
    return result if out is None else _torch.give_back(out, result)


def last_report() -> dict[str, Any]:
    """Returns what this thread's last matmul() did: the engine, how many products each scheme computed, dynamic ranges,
    blocks (docs/schema/report.schema.json)."""
    return _abi.read_json(lambda *buffer: library.kintsugi_report(this_thread.handle.pointer, *buffer))


def release_caches() -> None:
    """Releases what calls keep for later calls: plans, launches, and device memory, which torch gets back if it is torch's."""
    _abi.check(library.kintsugi_release_caches())
    _compiled.core.release_memory()


def schemes() -> list[dict[str, Any]]:
    """Returns the schemes: name, summary, program, bound, window and source of each (docs/schema/schemes.schema.json)."""
    return _abi.read_json(library.kintsugi_describe_schemes)["schemes"]


def engines() -> list[dict[str, Any]]:
    """Returns the engines: what each can do on this machine, and why not more (docs/schema/engines.schema.json)."""
    return _abi.read_json(library.kintsugi_describe_engines)["engines"]
