#!/usr/bin/env python3
"""Recorded documents: NAME.json as the programs write it, or NAME.json.xz with numbers of seven digits, a twentieth of its size.

example: lab/studies/recorded.py lab/results/papers/*.json    packs files and removes the unpacked ones
         xz --decompress lab/results/papers/*.xz              unpacks them, for kintsugi-lab reproduce --recorded
"""

import json
import lzma
import pathlib
import sys

PACKED = ".xz"


def file_of(folder, name):
    """The file NAME.json of a folder, packed or not; None if there is neither."""
    file = pathlib.Path(folder) / f"{name}.json"
    return next((found for found in (file, file.with_name(file.name + PACKED)) if found.exists()), None)


def read(file):
    text = file.read_bytes()
    return json.loads(lzma.decompress(text) if file.suffix == PACKED else text)


def unpack(files, folder):
    """Writes documents into a folder as NAME.json and returns the files."""
    unpacked = [pathlib.Path(folder) / file.name.removesuffix(PACKED) for file in files]
    for file, target in zip(files, unpacked):
        target.write_text(json.dumps(read(file)))
    return unpacked


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, list):
        return [rounded(element) for element in value]
    return {name: rounded(member) for name, member in value.items()} if isinstance(value, dict) else value


def pack(file):
    text = json.dumps(rounded(read(file)), separators=(",", ":"), ensure_ascii=False) + "\n"
    file.with_name(file.name + PACKED).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    file.unlink()


if __name__ == "__main__":
    for word in sys.argv[1:] or sys.exit(__doc__):
        pack(pathlib.Path(word))
