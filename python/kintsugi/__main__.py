"""kintsugi run -- PROGRAM ...: starts a program with the drop-in for cuBLAS preloaded."""

import argparse
import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
# libkintsugi precedes the drop-in, which finds it by its SONAME.
LIBRARIES = [FOLDER / "libkintsugi.so", FOLDER / "libkintsugi_cublas.so"]
AUDIT = FOLDER / "libkintsugi_cublas_audit.so"


def environment(audit):
    """Returns the environment of the program. Ends the process if the package has no drop-in, or if the path of the drop-in
    has characters that LD_PRELOAD does not allow."""
    needed = [*LIBRARIES, *([AUDIT] if audit else [])]
    for library in needed:
        if not library.is_file():
            sys.exit(f"kintsugi run: there is no {library}: this package was built without the drop-in for cuBLAS")
        if " " in str(library) or ":" in str(library):
            sys.exit(f"kintsugi run: the dynamic linker takes no space and no colon in LD_PRELOAD: \"{library}\" has one")
    given_preload = os.environ.get("LD_PRELOAD", "")
    preload = ":".join([*map(str, LIBRARIES), *([given_preload] if given_preload else [])])
    return {**os.environ, "LD_PRELOAD": preload, **({"LD_AUDIT": str(AUDIT)} if audit else {})}


def main():
    parser = argparse.ArgumentParser(prog="kintsugi", description=__doc__,
                                     epilog="example: KINTSUGI_REPORT=- kintsugi run -- python3 train.py")
    command = parser.add_subparsers(dest="command", required=True).add_parser(
        "run", help="start a program with the drop-in", epilog="example: kintsugi run --audit -- python3 jax_program.py")
    command.add_argument("--audit", action="store_true",
                         help="reach programs that take cuBLAS's functions from a handle of their own, such as JAX, too")
    command.add_argument("program", nargs=argparse.REMAINDER, help="program and its arguments, after --")
    words = parser.parse_args()
    program = words.program[1:] if words.program[:1] == ["--"] else words.program
    if not program:
        parser.error("run: there is no program")
    try:
        os.execvpe(program[0], program, environment(words.audit))
    except OSError as error:
        sys.exit(f"kintsugi run: {program[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
