"""The library's descriptions of itself and of the last product, and its caches."""

from __future__ import annotations

import json
from typing import Any

from kintsugi import _core


def last_report() -> dict[str, Any]:
    """Returns what this thread's last matmul() did: the engine, how many products each scheme computed, dynamic ranges,
    blocks (docs/schema/report.schema.json)."""
    report: dict[str, Any] = json.loads(_core.report_text())
    return report


def release_caches() -> None:
    """Releases what calls keep for later calls: plans, launches, and device memory, which torch gets back if it is torch's."""
    _core.release_caches()


def set_threads(threads: int | None) -> int:
    """Limits the threads of all calls of the process on the CPU; None or 0: no limit. Returns the threads that calls then have."""
    if threads is not None and not 0 <= threads < 2**31:
        raise ValueError(f"threads = {threads} is negative or too large; accepted: None, 0 for no limit, or a number of threads")
    return _core.set_threads(threads or 0)


def schemes() -> list[dict[str, Any]]:
    """Returns the schemes: name, summary, program, bound, window and source of each (docs/schema/schemes.schema.json)."""
    found: list[dict[str, Any]] = json.loads(_core.schemes_text())["schemes"]
    return found


def engines() -> list[dict[str, Any]]:
    """Returns the engines: what each can do on this machine, and why not more (docs/schema/engines.schema.json)."""
    found: list[dict[str, Any]] = json.loads(_core.engines_text())["engines"]
    return found
