"""Destinations and width of output: standard output as a file, read-only files, COLUMNS, interruptions."""

import io
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import time

import numpy
import pytest
from conftest import PROGRAM


@pytest.fixture
def operands(program):
    program.ok("generate", "uniform", "6x4", "-o", "A.npy")
    program.ok("generate", "uniform", "4x5", "-o", "B.npy", "--side", "b")
    return program


def bytes_of(program, *words):
    completed = subprocess.run([program.executable(words), *words], cwd=program.folder, env=program.environment, capture_output=True)
    assert completed.returncode == 0 and completed.stderr == b"", completed.stderr
    return completed.stdout


def test_matrices_on_standard_output(operands):
    assert bytes_of(operands, "generate", "uniform", "6x4", "-o", "-") == (operands.folder / "A.npy").read_bytes()
    operands.ok("gemm", "A.npy", "B.npy", "-o", "C.npy")
    printed = numpy.load(io.BytesIO(bytes_of(operands, "gemm", "A.npy", "B.npy", "-o", "-")))
    assert numpy.array_equal(printed, operands.load("C.npy"))
    assert "-" not in operands.files()


def test_documents_on_standard_output(program, validate):
    validate(json.loads(bytes_of(program, "bench", "fp16", "--shapes", "8", "--repeat", "1", "-o", "-")), "bench")
    assert "-" not in program.files()


@pytest.mark.parametrize(
    "words,message",
    [
        (["gemm", "A.npy", "B.npy", "-o", "-", "--json"], "-o: - is standard output, where --json writes too; give a file"),
        (["gemm", "A.npy", "B.npy", "-o", "-", "--check"], "-o: - is standard output, where --check writes too; give a file"),
        (["generate", "uniform", "3x3", "-o", "-", "--json"], "-o: - is standard output, where --json writes too; give a file"),
    ],
)
def test_what_standard_output_cannot_take(operands, words, message):
    assert operands.bad(*words) == message


def shell(program, line):
    environment = {**program.environment, "PATH": f"{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", line], cwd=program.folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("line", [
    "cat A.npy | kintsugi gemm - B.npy -o C.npy",
    "kintsugi gemm - B.npy -o C.npy < A.npy",
    "(head -c 3; kintsugi gemm - B.npy -o C.npy) < <(printf 123; cat A.npy)",
    "kintsugi gemm A.npy - -o - < B.npy > C.npy",
    "kintsugi gemm <(cat A.npy) <(cat B.npy) -o C.npy",
    "kintsugi generate uniform 6x4 -o - | kintsugi gemm - <(cat B.mtx) --type fp32 -o C.npy",
    "kintsugi explain - B.npy < A.npy && kintsugi gemm - B.npy -o C.npy < A.npy",
])
def test_operands_from_pipes(operands, line):
    operands.ok("generate", "uniform", "4x5", "-o", "B.mtx", "--side", "b")
    operands.ok("gemm", "A.npy", "B.npy", "-o", "expected.npy")
    run = shell(operands, f"set -o pipefail; {line}")
    assert run.returncode == 0 and run.stderr == "", run.stderr
    assert numpy.array_equal(operands.load("C.npy"), operands.load("expected.npy"))


@pytest.mark.parametrize("line,message", [
    ("kintsugi gemm - - -o C.npy < A.npy", "-: standard input holds a single matrix; give a file for the other operand"),
    ("kintsugi gemm A.npy B.npy --c - --beta 1 -o C.npy < /dev/null", "standard input: holds no matrix: it begins neither with "
     "\\x93NUMPY (.npy) nor with %%MatrixMarket"),
    ("kintsugi gemm <(echo 1 2) B.npy -o C.npy", "/dev/fd/63: holds no matrix: it begins neither with \\x93NUMPY (.npy) nor with "
     "%%MatrixMarket"),
    ("head -c 200 A.npy | kintsugi gemm - B.npy -o C.npy", "standard input: holds 72 bytes of data, 96 are needed for float32 (6, 4)"),
    ("cat A.npy B.npy | kintsugi gemm - B.npy -o C.npy", "standard input: holds more than the 96 bytes of data of float32 (6, 4)"),
    ("kintsugi gemm - B.npy -o C.npy <&-", "standard input: cannot be read: Bad file descriptor"),
])
def test_pipes_without_a_matrix(operands, line, message):
    run = shell(operands, line)
    assert (run.returncode, run.stdout, run.stderr) == (2, "", f"kintsugi: {message}\n")
    assert "C.npy" not in operands.files()


def test_a_terminal_is_no_operand(operands):
    leader, follower = pty.openpty()
    message = operands.bad("gemm", "-", "B.npy", "-o", "C.npy", stdin=follower)
    os.close(follower)
    os.close(leader)
    assert message == "-: standard input is a terminal; give a file or a pipe (./- is a file of that name)"


def test_a_terminal_gets_no_binary_data(program):
    leader, follower = pty.openpty()
    completed = subprocess.run([PROGRAM, "generate", "uniform", "3x3", "-o", "-"], cwd=program.folder, stdout=follower,
                               stderr=subprocess.PIPE, text=True, env=program.environment)
    os.close(follower)
    os.close(leader)
    assert completed.returncode == 2
    assert completed.stderr == ("kintsugi: -o: - would write binary data (.npy) to the terminal; give a file or a pipe\n")


@pytest.mark.parametrize("words", [["gemm", "A.npy", "B.npy", "-o", "C.npy"], ["generate", "uniform", "3x3", "-o", "C.npy"],
                                   ["bench", "fp16", "-o", "C.npy"]])
def test_read_only_files_are_not_replaced(operands, words):
    """Although the folder would allow it, and root may write anywhere."""
    (operands.folder / "C.npy").write_text("kept")
    os.chmod(operands.folder / "C.npy", 0o444)
    expected = "C.npy: is read-only and is not replaced; choose another file, or chmod u+w it"
    assert operands.bad(*words) == expected
    assert (operands.folder / "C.npy").read_text() == "kept"


LISTINGS = [["schemes"], ["engines"], ["settings"], ["gemm", "A.npy", "B.npy", "--check", "--compare", "fp16,fp16x3"],
            ["explain", "A.npy", "B.npy"], ["bench", "fp16", "--shapes", "8", "--repeat", "1"]]


@pytest.mark.parametrize("columns", [60, 80, 100])
@pytest.mark.parametrize("words", LISTINGS, ids=lambda words: words[0])
def test_tables_fit_the_columns(operands, words, columns):
    """Lines are broken at spaces, so only a word that is longer may stand out: a path, a list of names."""
    wide = operands.ok(*words).stdout
    narrow = operands.ok(*words, environment={"COLUMNS": str(columns)}).stdout
    longest_word = max(len(word) for word in wide.split())
    rules = [line for line in narrow.splitlines() if re.fullmatch(r"[- ]+", line) and "--" in line]
    assert rules and all(len(rule) <= columns for rule in rules), rules
    assert all(len(line) <= max(columns, longest_word + 30) for line in narrow.splitlines())
    assert all(len(line) <= columns for line in narrow.splitlines() if max(map(len, line.split()), default=0) < columns // 3)
    if words[0] in ("schemes", "explain"):
        assert any(len(line) > columns for line in wide.splitlines()), "without COLUMNS lines are as long as they are"
    numbers = re.findall(r"\d+\.\d+e[-+]\d+", wide)
    if words[0] == "explain":
        assert sorted(re.findall(r"\d+\.\d+e[-+]\d+", narrow)) == sorted(numbers), "nothing is left out"


@pytest.mark.parametrize("columns", ["", "0", "-3", "many"])
def test_columns_that_are_none_are_ignored(program, columns):
    assert program.ok("schemes", environment={"COLUMNS": columns}).stdout == program.ok("schemes").stdout


def with_streams(program, streams, *words):
    """The exit status and what was written where the shell's redirections `streams` are given."""
    completed = subprocess.run(["sh", "-c", f'exec "$@" {streams}', "sh", PROGRAM, *words], cwd=program.folder,
                               env=program.environment, capture_output=True, text=True)
    return completed.returncode, completed.stdout, completed.stderr


@pytest.mark.parametrize("streams", ["2>&-", ">&-", "<&-", "<&- >&- 2>&-", "2>/dev/full", ">/dev/full 2>/dev/full"])
def test_closed_and_full_streams_change_no_exit_status(operands, streams):
    """Bad input is 2, output that is lost is 2, all else is 0. No file gets the descriptor of a closed stream."""
    lost = ">&-" in streams.replace("2>&-", "") or ">/dev/full" in streams.replace("2>/dev/full", "")
    status, stdout, stderr = with_streams(operands, streams, "nonsense")
    assert (status, stdout) == (2, "") and ("nonsense: is not known here" in stderr) == ("2>" not in streams)
    status, _, stderr = with_streams(operands, streams, "schemes")
    assert status == (2 if lost else 0)
    assert ("standard output: cannot" in stderr) == (lost and "2>" not in streams)
    assert with_streams(operands, streams, "--help")[0] == (2 if lost else 0)
    operands.ok("gemm", "A.npy", "B.npy", "-o", "C.npy")
    status, _, _ = with_streams(operands, streams, "gemm", "A.npy", "B.npy", "-o", "D.npy", "--explain", "--log", "debug")
    assert status == (2 if lost else 0)
    assert (operands.folder / "D.npy").read_bytes() == (operands.folder / "C.npy").read_bytes()


def test_a_program_that_is_run_finds_closed_streams_closed(program):
    code = "import os\nfor stream in (0, 1, 2):\n  try: os.fstat(stream); print(stream, file=open('open', 'a'))\n  except OSError: pass"
    (program.folder / "code.py").write_text(code)
    assert with_streams(program, "<&- 2>&-", "run", "--blas", "--", "python3", "code.py")[0] == 0
    assert (program.folder / "open").read_text() == "1\n"


def catches(running, number):
    """Returns True if the process has a handler for the signal."""
    with open(f"/proc/{running.pid}/status") as file:
        mask = int(re.search(r"^SigCgt:\s*(\w+)", file.read(), re.MULTILINE)[1], 16)
    return mask >> (number - 1) & 1


def interrupt(program, words, number=signal.SIGINT, file=None):
    """Once the work has begun, and `file` is there."""
    running = subprocess.Popen([program.executable(words), *words], cwd=program.folder, env=program.environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while running.poll() is None and not (catches(running, number) and (file is None or (program.folder / file).exists())):
        time.sleep(0.01)
    time.sleep(0.2)
    running.send_signal(number)
    stdout, stderr = running.communicate(timeout=120)
    assert running.returncode == -number, stderr
    return stdout, stderr.strip().splitlines()


def test_an_interrupted_benchmark_keeps_its_finished_shapes(program):
    """A shape takes 80 ms a repetition, most of them waiting: 8 s, so that the second is being measured at the signal."""
    shapes = ",".join(["8"] + [str(512 + size) for size in range(50)])
    _, lines = interrupt(program, ["bench", "fp16", "--shapes", shapes, "--repeat", "100", "-o", "b.json"], file="b.json")
    assert lines[-1] == ("kintsugi: interrupted; b.json has the 1 finished shape; the same command would start from the "
                         "beginning")
    assert {row["problem"]["m"] for row in json.loads((program.folder / "b.json").read_text())["rows"]} == {8}
