"""The command `kintsugi`: starts the program of that name, which the wheel carries beside its libraries."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).with_name("kintsugi")
    try:
        os.execv(program, ["kintsugi", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"kintsugi: {program} cannot be run: {error.strerror}. The wheel carries it; install one with pip.")


if __name__ == "__main__":
    main()
