"""The library's log lines, as many as the setting `log` (KINTSUGI_LOG) lets through."""

from __future__ import annotations

import logging
import sys

# Levels of the module logging by kintsugi_log_level.
LEVELS = {1: logging.ERROR, 2: logging.INFO, 3: logging.DEBUG}

logger = logging.getLogger("kintsugi")
if logger.level == logging.NOTSET:
    logger.setLevel(logging.DEBUG)  # the setting `log` is the threshold; a program may set a higher one


def write(level: int, text: str) -> None:
    """Writes a line to the logger "kintsugi" if logging is configured, else to standard error. _core calls it."""
    if logger.hasHandlers():
        logger.log(LEVELS.get(level, logging.DEBUG), "%s", text)
    elif sys.stderr is not None:
        print(f"kintsugi log: {text}", file=sys.stderr)
