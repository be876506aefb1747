"""Bad input: one line, exit status 2, nothing half-written. The files' own faults are in files/."""

import os
import resource
import signal
import subprocess
import time

import numpy
import pytest
from conftest import PROGRAM


@pytest.fixture
def operands(program):
    program.save("A.npy", numpy.ones((3, 4), "f4"))
    program.save("B.npy", numpy.ones((4, 2), "f4"))
    program.save("C.npy", numpy.full((3, 2), 7, "f4"))
    return program


def refused(program, *words, **keywords):
    """The message; no file changed, came or went."""
    before = {name: (program.folder / name).read_bytes() for name in program.files() if "." in name}
    message = program.bad(*words, **keywords)
    assert {name: (program.folder / name).read_bytes() for name in program.files() if "." in name} == before
    return message


@pytest.mark.parametrize(
    "transa,transb,shape_b,message",
    [
        ("N", "N", (5, 6), "B.npy: A is 3 x 4 and B is 5 x 6: the inner dimensions 4 and 5 differ"),
        ("N", "T", (6, 5), "B.npy: A is 3 x 4 and op(B) is 5 x 6: the inner dimensions 4 and 5 differ"),
        ("T", "N", (4, 2), "B.npy: op(A) is 4 x 3 and B is 4 x 2: the inner dimensions 3 and 4 differ"),
        ("C", "C", (2, 4), "B.npy: op(A) is 4 x 3 and op(B) is 4 x 2: the inner dimensions 3 and 4 differ"),
    ],
)
def test_inner_dimensions(operands, transa, transb, shape_b, message):
    operands.save("B.npy", numpy.ones(shape_b, "f4"))
    flags = ["--transa", transa, "--transb", transb, "-o", "C.npy"]
    assert refused(operands, "gemm", "A.npy", "B.npy", *flags) == message


def test_shape_of_c(operands):
    operands.save("C0.npy", numpy.ones((2, 3), "f4"))
    message = refused(operands, "gemm", "A.npy", "B.npy", "-o", "C.npy", "--beta", "1", "--c", "C0.npy")
    assert message == "C0.npy: is 2 x 3; A B is 3 x 2"


def test_types_must_agree(operands):
    operands.save("B.npy", numpy.ones((4, 2), "f8"))
    message = refused(operands, "gemm", "A.npy", "B.npy", "-o", "C.npy")
    assert message == "B.npy: holds float64, A.npy holds float32: give --type fp32 or --type fp64 for all"


def test_c_and_beta_come_together(operands):
    message = refused(operands, "gemm", "A.npy", "B.npy", "-o", "C.npy", "--beta", "2")
    assert message == "--beta: 2 needs a matrix C: give --c FILE"
    message = refused(operands, "gemm", "A.npy", "B.npy", "-o", "C.npy", "--c", "C.npy")
    assert message == "--c: C.npy needs --beta"


@pytest.mark.parametrize(
    "words,message",
    [
        (["--alpha", "one"], '--alpha: "one" is not a number'),
        (["--alpha", "1.5x"], '--alpha: "1.5x" is not a number'),
        (["--alpha", ""], '--alpha: "" is not a number'),
        (["--alpha", "1e999"], '--alpha: "1e999" is out of the range of float64'),
        (["--alpha", "1e300"], "--alpha: 1e300 is beyond float32, the type of the operands"),
        (["--transa", "X"], '--transa: "X" is not accepted; accepted: N, T, C'),
        (["--type", "fp16"], '--type: "fp16" is not accepted; accepted: fp32, fp64, c32, c64, dd'),
        (["--order", "x"], '--order: "x" is not accepted; accepted: c, fortran'),
        (["--order", "Fortan"], '--order: "Fortan" is not accepted; did you mean fortran? Accepted: c, fortran'),
        (["--compare", "fp16"], "--compare: requires --check"),
        (["--check", "--compare", "fp15"], '--compare: "fp15" is neither an accuracy nor a scheme; did you mean fp16? '),
        (["--check", "--compare", "fp16,exakt"], '--compare: "exakt" is neither an accuracy nor a scheme; did you mean exact? '),
        (["--scheme", "fp16x4"], '--scheme: there is no scheme "fp16x4"; did you mean fp16x3? The schemes are fp16, '),
        (["--scheme", "abacus"], '--scheme: there is no scheme "abacus"; the schemes are fp16, '),
        (["--engine", "cup"], '--engine: there is no engine "cup"; did you mean cpu? The engines are auto, '),
        (["--engine", "abacus"], '--engine: there is no engine "abacus"; the engines are '),
        (["--policy", "never"], '--policy: policy = "never" is not accepted; accepted: auto, emulate, native'),
        (["--accuracy", "fp8"], '--accuracy: accuracy = "fp8" is not accepted; accepted: '),
        (["--accuracy", "fp23"], '--accuracy: accuracy = "fp23" is not accepted; did you mean fp32? Accepted: fp32, '),
        (["--policy", "emulat"], '--policy: policy = "emulat" is not accepted; did you mean emulate? Accepted: auto, '),
        (["--threads", "-1"], '--threads: threads = "-1" is not accepted; accepted: '),
        (["--workspace-limit", "1T"], '--workspace-limit: workspace_limit = "1T" is not accepted; accepted: '),
        (["--scheme", "fp16", "--accumulator", "abacus"], '--accumulator: there is no accumulator "abacus"; the '),
        (["--scheme", "fp16", "--workspace-limit", "1"], "gemm: "),
        (["--nonsense"], "--nonsense: is not known here; kintsugi gemm --help lists the flags"),
        (["--acuracy=fp32"], "--acuracy=fp32: is not known here; did you mean --accuracy? kintsugi gemm --help lists the flags"),
        (["D.npy"], "D.npy: is not known here; kintsugi gemm --help lists the arguments"),
        (["--alpha"], "--alpha: 1 required "),
    ],
)
def test_flags(operands, words, message):
    assert refused(operands, "gemm", "A.npy", "B.npy", "-o", "C.npy", *words).startswith(message)


@pytest.mark.parametrize(
    "words,message",
    [
        ([], "command: one is needed; kintsugi --help lists them"),
        (["gem"], "gem: is not known here; did you mean gemm? kintsugi --help lists the commands"),
        (["benhc", "fp16"], "benhc: is not known here; did you mean bench? kintsugi --help lists the commands"),
        (["abacus"], "abacus: is not known here; kintsugi --help lists the commands"),
        (["--verson"], "--verson: is not known here; did you mean --version? kintsugi --help lists the flags"),
        (["help", "gmem"], 'COMMAND: there is no command "gmem"; did you mean gemm? The commands are gemm, '),
        (["schemes", "fp16x4"], 'NAME: there is no scheme "fp16x4"; did you mean fp16x3? The schemes are fp16, '),
        (["bench", "fp32x"], 'CANDIDATE: "fp32x" is neither a contract nor a scheme; did you mean fp32? Accepted: a tolerance '),
        (["bench", "abacus"], 'CANDIDATE: "abacus" is neither a contract nor a scheme; accepted: a tolerance such as 1e-10, '
                              "fp32, fp64, exact, auto, fp16, "),
        (["bench", "fp16", "--baselines", "nativ"], '--baselines: "nativ" is not known; did you mean native?'),
        (["bench", "fp16", "--repeat", "0"], '--repeat: "0" is not a whole number from 1 to 1000000'),
        (["bench", "fp16", "--batch", "x"], '--batch: "x" is not a whole number from 1 to 1048576'),
        (["explain", "--m", "0", "--n", "3", "--k", "3"], '--m: "0" is not a whole number from 1 up'),
        (["explain", "A.npy", "B.npy", "--schemes", "nativ"], '--schemes: "nativ" is not known; did you mean native? '),
        (["generate", "unifrom", "3x3", "-o", "X.npy"], "DISTRIBUTION: distribution 'unifrom' is unknown; did you mean "
                                                        "uniform? Accepted: uniform, "),
        (["gemm"], "A: is missing"),
        (["gemm", "A.npy"], "B: is missing"),
        (["gemm", "A.npy", "B.npy"], "-o: a file for C is needed, unless --check or --explain is given"),
        (["gemm", "A.npy", "absent.npy", "-o", "C.npy"], "absent.npy: cannot be opened: No such file or directory"),
        (["gemm", "A.npy", "B.npy", "-o", "no/C.npy"], "no/C.npy: the folder no does not exist"),
        (["gemm", "A.npy", "B.npy", "-o", "A.npy/C.npy"], "A.npy/C.npy: A.npy is not a folder"),
        (["gemm", "A.npy", "B.npy", "-o", "C.txt"], "C.txt: ends with neither .npy nor .mtx"),
        (["gemm", "A.npy", "B.npy", "-o", "A.npy"], "-o: A.npy is an operand, A.npy; choose another file"),
        (["gemm", "A.npy", "B.npy", "-o", "./A.npy"], "-o: ./A.npy is an operand, A.npy; choose another file"),
        (["generate", "uniform", "3", "-o", "X.npy"], 'SHAPE: "3" is not of the form ROWSxCOLUMNS'),
        (["generate", "uniform", "3x-3", "-o", "X.npy"], 'SHAPE: "3x-3" is not of the form ROWSxCOLUMNS'),
        (["generate", "uniform", "9999999999x9999999999", "-o", "X.npy"], "SHAPE: 9999999999 x 9999999999 elements of"),
        (["generate", "gauss", "3x3", "-o", "X.npy"], "DISTRIBUTION: "),
        (["generate", "phi:-1", "3x3", "-o", "X.npy"], "DISTRIBUTION: "),
        (["generate", "offset:500", "3x3", "-o", "X.npy"], "DISTRIBUTION: "),
        (["generate", "uniform", "3x3", "-o", "X.npy", "--seed", "-1"], '--seed: "-1" is not an integer from 0 to'),
        (["generate", "uniform", "3x3"], "--output: is missing"),
        (["settings", "--json", "--markdown"], "--"),
    ],
)
def test_command_lines(operands, words, message):
    assert refused(operands, *words).startswith(message)


def test_a_folder_as_output(operands):
    (operands.folder / "D.npy").mkdir()
    assert operands.bad("gemm", "A.npy", "B.npy", "-o", "D.npy") == "D.npy: is a folder"


def test_a_device_as_output(operands):
    os.symlink("/dev/full", operands.folder / "D.npy")
    assert operands.bad("gemm", "A.npy", "B.npy", "-o", "D.npy") == "D.npy: is not a regular file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(operands):
    os.chmod(operands.folder, 0o555)
    try:
        assert operands.bad("gemm", "A.npy", "B.npy", "-o", "C.npy") == "C.npy: the folder . cannot be written to"
    finally:
        os.chmod(operands.folder, 0o755)


def limit_files(bytes):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, bytes))


@pytest.mark.parametrize("suffix", ["npy", "mtx"])
def test_a_full_disk_leaves_the_old_file(program, suffix):
    program.ok("generate", "uniform", "100x100", "-o", "A.npy")
    program.ok("generate", "uniform", "2x2", "-o", f"C.{suffix}")
    message = refused(program, "gemm", "A.npy", "A.npy", "-o", f"C.{suffix}", preexec=limit_files(20000))
    expected = f"C.{suffix}: cannot be written: File too large (after 20000 bytes); what was there before is unchanged"
    assert message == expected
    refused(program, "generate", "uniform", "100x100", "-o", f"C.{suffix}", preexec=limit_files(0))
    refused(program, "generate", "uniform", "100x100", "-o", f"New.{suffix}", preexec=limit_files(30000))


def test_a_really_full_file_system(program):
    """A tmpfs of 64 KiB, in a mount namespace of our own; where there are none, the limit above has to do."""
    program.ok("generate", "uniform", "2x2", "-o", "C.npy")
    script = (
        'mount -t tmpfs -o size=64k none "$0" && cp ../C.npy "$0/C.npy" && cd "$0" || exit 99; '
        '"$1" generate uniform 200x200 -o C.npy; status=$?; cmp C.npy ../C.npy && ls && exit $status'
    )
    (program.folder / "small").mkdir()
    completed = subprocess.run(
        ["unshare", "-r", "-m", "sh", "-c", script, str(program.folder / "small"), PROGRAM],
        cwd=program.folder / "small",
        env=program.environment,
        capture_output=True,
        text=True,
    )
    if completed.returncode not in (0, 2):
        pytest.skip(f"no mount namespaces here: {completed.stderr}")
    assert completed.returncode == 2 and completed.stdout.split() == ["C.npy"]
    assert completed.stderr.startswith("kintsugi: C.npy: cannot be written: No space left on device")
    assert completed.stderr.count("\n") == 1


def test_a_kill_leaves_the_old_file(program):
    """SIGTERM while a large file is being written: the old one stays, the temporary goes."""
    program.ok("generate", "uniform", "2x2", "-o", "C.npy")
    old = (program.folder / "C.npy").read_bytes()
    words = [PROGRAM, "generate", "uniform", "3000x3000", "-o", "C.npy", "--type", "fp64"]
    running = subprocess.Popen(words, cwd=program.folder, env=program.environment, stdout=subprocess.DEVNULL)
    while running.poll() is None and not any(".part-" in name for name in program.files()):
        time.sleep(0.0005)
    running.terminate()
    status = running.wait()
    assert not any(".part-" in name for name in program.files())
    if status == -signal.SIGTERM:
        assert (program.folder / "C.npy").read_bytes() == old
    else:  # it was quicker than we were
        assert status == 0 and program.load("C.npy").shape == (3000, 3000)


def test_links_and_permissions_stay(operands):
    (operands.folder / "deep").mkdir()
    target = operands.folder / "deep" / "D.npy"
    numpy.save(target, numpy.zeros(3))
    os.chmod(target, 0o640)
    os.symlink("deep/D.npy", operands.folder / "D.npy")
    operands.ok("gemm", "A.npy", "B.npy", "-o", "D.npy")
    assert os.path.islink(operands.folder / "D.npy")
    assert os.stat(target).st_mode & 0o777 == 0o640
    assert numpy.array_equal(numpy.load(target), numpy.full((3, 2), 4, "f4"))
    assert os.listdir(operands.folder / "deep") == ["D.npy"]


def test_new_files_get_the_usual_permissions(operands):
    operands.ok("gemm", "A.npy", "B.npy", "-o", "D.npy", preexec=lambda: os.umask(0o027))
    assert os.stat(operands.folder / "D.npy").st_mode & 0o777 == 0o640


@pytest.mark.parametrize("words", [["schemes"], ["doctor", "--json"], ["--help"], ["gemm", "--help"], ["--version"]])
def test_output_that_cannot_be_written(program, words):
    with open("/dev/full", "wb") as full:
        completed = subprocess.run(
            [PROGRAM, *words], cwd=program.folder, env=program.environment, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert completed.returncode == 2
    assert completed.stderr.startswith("kintsugi: standard output: ") and completed.stderr.count("\n") == 1


def test_names_with_line_ends_stay_one_line(program):
    assert program.bad("gemm", "A\nB.npy", "B.npy", "-o", "C.npy").startswith("A B.npy: cannot be opened")
