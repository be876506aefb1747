"""Unchanged programs with the drop-in preloaded, under every policy: numpy, Fortran, forks, reports, malformed settings."""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import LIBRARY, read_report

# Prints a hash of the bits of products of all types by numpy's `@`, which calls CBLAS.
PRODUCTS = r"""
import hashlib, sys, numpy
random = numpy.random.default_rng(5)
digest = hashlib.sha256()
for m, n, k in [(1, 1, 1), (3, 5, 7), (40, 31, 57), (130, 70, 90)]:
    for kind in ("f4", "f8", "c8", "c16"):
        a, b = random.standard_normal((m, k)), random.standard_normal((k, n))
        if kind.startswith("c"):
            a, b = a + 1j * random.standard_normal((m, k)), b - 1j * random.standard_normal((k, n))
        c = a.astype(kind) @ b.astype(kind)
        wide = a.astype(kind).astype("c32") @ b.astype(kind).astype("c32")
        unit = 2.0**-24 if kind in ("f4", "c8") else 2.0**-53
        bound = (2 * k + 8) * unit * 2 * (abs(a) @ abs(b))
        assert (abs(c - wide) <= bound).all(), kind
        digest.update(c.tobytes())
print(digest.hexdigest())
"""

# Three calls of two distinct problems; the last line is the products' bits.
THREE_CALLS = r"""
import numpy
a = numpy.arange(12.0).reshape(3, 4)
print((a @ a.T.copy() + a @ a.T.copy()).tobytes().hex(), (a.T.copy() @ a).tobytes().hex())
"""


# Checks residuals of LAPACK's factorizations in units of rounding, and prints a hash of the bits of all factors.
FACTORIZATIONS = r"""
import hashlib, numpy, scipy.linalg
random = numpy.random.default_rng(7)
digest = hashlib.sha256()
n = 300
for kind in ("f4", "f8", "c8", "c16"):
    a = random.standard_normal((n, n)) + (1j * random.standard_normal((n, n)) if kind.startswith("c") else 0)
    a, b = a.astype(kind), random.standard_normal((n, 40)).astype(kind)
    unit = n * numpy.finfo(kind).eps
    p, l, u = scipy.linalg.lu(a)
    assert abs(p @ l @ u - a).max() < 20 * unit, kind
    s = a @ a.conj().T + n * numpy.eye(n, dtype=kind)
    c = scipy.linalg.cholesky(s, lower=True)
    assert abs(c @ c.conj().T - s).max() < unit * abs(s).max(), kind
    x = scipy.linalg.solve_triangular(c, b, lower=True)
    assert abs(c @ x - b).max() < unit * (abs(c).max() * abs(x).max() + abs(b).max()), kind
    q, r = scipy.linalg.qr(a)
    assert abs(q @ r - a).max() < 10 * unit, kind
    inverse = scipy.linalg.inv(a)
    assert abs(inverse @ a - numpy.eye(n)).max() < n * unit * abs(inverse).max() * abs(a).max(), kind
    for found in (l, u, c, x, q, r, inverse):
        digest.update(numpy.ascontiguousarray(found).tobytes())
print(digest.hexdigest())
"""


def has_shared_blas():
    import numpy.core._multiarray_umath as module

    return "libblas.so" in subprocess.run(["ldd", module.__file__], capture_output=True, text=True).stdout


needs_shared_blas = pytest.mark.skipif(not has_shared_blas(), reason="this numpy has its own BLAS")


def python(code):
    return [sys.executable, "-c", code]


@needs_shared_blas
class TestNumpy:
    def test_native_gives_the_bits_of_the_program_alone(self, preloaded):
        alone = preloaded.ok(*python(PRODUCTS), preload=False)
        native = preloaded.ok(*python(PRODUCTS), policy="native")
        assert native.stdout == alone.stdout and native.stderr == ""

    def test_auto_is_silent(self, preloaded):
        assert preloaded.ok(*python(PRODUCTS)).stderr == ""

    @pytest.mark.parametrize("policy", ["emulate", "force"])
    def test_emulated_bits_do_not_depend_on_threads(self, preloaded, policy):
        one, two = (preloaded.ok(*python(PRODUCTS), policy=policy, threads=count) for count in ("1", "2"))
        assert one.stdout == two.stdout and one.stderr == two.stderr == ""

    def test_accuracy_exact_rounds_correctly(self, preloaded):
        code = ("import numpy\nfrom fractions import Fraction\nrandom = numpy.random.default_rng(3)\n"
                "a, b = (random.standard_normal((9, 9)) * 2.0 ** random.integers(-40, 40, (9, 9)) for _ in 'ab')\n"
                "c = a @ b\n"
                "for i in range(9):\n    for j in range(9):\n"
                "        assert c[i, j] == float(sum(Fraction(a[i, l]) * Fraction(b[l, j]) for l in range(9)))\n")
        report = preloaded.report(*python(code), accuracy="exact")
        assert [problem["calls"] for problem in report["problems"] if problem["symbol"] == "cblas_dgemm"] == [1]
        assert not any(problem["native_calls"] for problem in report["problems"])

    @pytest.mark.parametrize("accuracy, kept", [("fp32", True), ("fp64", False), ("dd", False), ("1e-3", True), ("1e-20", False)])
    def test_every_type_keeps_its_own_contract(self, preloaded, accuracy, kept):
        """PRODUCTS checks the bound of each type; an accuracy that a type cannot keep leaves it its own contract, which one line says."""
        lines = preloaded.ok(*python(PRODUCTS), accuracy=accuracy, policy="emulate").stderr.splitlines()
        assert len(lines) == (0 if kept else 1) and all(accuracy in line and " is kept; " in line for line in lines)

    def test_a_forked_child_multiplies(self, preloaded):
        code = ("import os, signal, numpy\na = numpy.random.default_rng(1).standard_normal((80, 80))\nc = a @ a[::-1].copy()\n"
                "child = os.fork()\nif child == 0:\n    signal.alarm(60)\n"
                "    os._exit(0 if (a @ a[::-1].copy()).tobytes() == c.tobytes() else 1)\n"
                "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n")
        preloaded.ok(*python(code), policy="emulate")

    def test_threads_multiply_while_the_program_forks(self, preloaded):
        """The child must not wait for a lock that another thread's call held at the fork."""
        code = ("import os, signal, numpy\nfrom concurrent.futures import ThreadPoolExecutor\n"
                "shapes = [(20 + i % 7, 30, 10 + i % 5) for i in range(200)]\n"
                "def product(shape):\n    m, n, k = shape\n"
                "    return numpy.arange(1.0 * m * k).reshape(m, k) @ numpy.arange(1.0 * k * n).reshape(k, n)\n"
                "with ThreadPoolExecutor(4) as pool:\n    products = pool.map(product, shapes)\n"
                "    for _ in range(5):\n        child = os.fork()\n        if child == 0:\n            signal.alarm(60)\n"
                "            product((9, 8, 7))\n            os._exit(0)\n"
                "        assert os.waitpid(child, 0)[1] == 0\n"
                "    assert all((c == numpy.einsum('ik,kj->ij', *(numpy.arange(1.0 * r * s).reshape(r, s)\n"
                "               for r, s in ((m, k), (k, n))))).all() for c, (m, n, k) in zip(products, shapes))\n")
        report = preloaded.report(*python(code), policy="emulate")
        assert sum(problem["calls"] for problem in report["problems"]) == 200
        assert len(report["problems"]) == 35 and not any(problem["failed_calls"] for problem in report["problems"])

    def test_a_scheme_that_does_not_take_the_type_is_forwarded(self, preloaded):
        alone = preloaded.ok(*python(THREE_CALLS), preload=False)
        report = preloaded.report(*python(THREE_CALLS), scheme="fp16x3")
        assert {problem["native_calls"] == problem["calls"] for problem in report["problems"]} == {True}
        assert all("no plan: " in problem["why"] and "fp16x3" in problem["why"] for problem in report["problems"])
        assert preloaded.ok(*python(THREE_CALLS), scheme="fp16x3").stdout == alone.stdout

    def test_force_reports_calls_that_it_cannot_emulate(self, preloaded):
        result = preloaded.ok(*python(THREE_CALLS), scheme="fp16x3", policy="force")
        assert result.stderr.count("kintsugi: cblas_dgemm: policy force, but no plan: ") == 3
        ended = preloaded(*python(THREE_CALLS), scheme="fp16x3", policy="force", strict="1")
        assert ended.returncode == 2 and ended.stdout == ""

    def test_force_emulates_lapack_in_scipy(self, preloaded):
        code = ("import numpy, scipy.linalg\nrandom = numpy.random.default_rng(2)\na = random.standard_normal((90, 90))\n"
                "b = random.standard_normal((90, 90))\nx = scipy.linalg.solve(a, b)\n"
                "assert abs(a @ x - b).max() < 1e-9\nq, r = scipy.linalg.qr(a)\nassert abs(q @ r - a).max() < 1e-12\n")
        report = preloaded.report(*python(code), policy="force")
        assert {"cblas_dgemm"} <= {problem["symbol"] for problem in report["problems"]}


class TestLapack:
    """LAPACK as scipy calls it, whether scipy has the system's BLAS or that of its wheel."""

    def test_native_gives_the_bits_of_the_program_alone(self, preloaded):
        pytest.importorskip("scipy")
        alone = preloaded.ok(*python(FACTORIZATIONS), preload=False)
        native = preloaded.ok(*python(FACTORIZATIONS), policy="native")
        auto = preloaded.ok(*python(FACTORIZATIONS))
        assert native.stdout == auto.stdout == alone.stdout and native.stderr == auto.stderr == ""

    def test_force_emulates_all_products_of_factorizations(self, preloaded):
        pytest.importorskip("scipy")
        report = preloaded.report(*python(FACTORIZATIONS), policy="force")
        assert not any(problem["native_calls"] or problem["failed_calls"] for problem in report["problems"])
        called = {problem["symbol"] for problem in report["problems"]}
        assert any("dsyrk" in symbol for symbol in called)
        if has_shared_blas():
            assert {"dtrmm_", "dtrsm_", "dgemm_", "ztrmm_"} <= called

    def test_bits_of_factorizations_do_not_depend_on_threads(self, preloaded):
        pytest.importorskip("scipy")
        one, two = (preloaded.ok(*python(FACTORIZATIONS), policy="emulate", threads=count) for count in ("1", "2"))
        assert one.stdout == two.stdout or not has_shared_blas()  # a wheel's LAPACK also multiplies without calling BLAS by name


@needs_shared_blas
class TestSettings:
    def test_a_report_counts_calls(self, preloaded):
        report = preloaded.report(*python(THREE_CALLS), policy="emulate")
        assert report["policy"] == "emulate" and "blas" in report["next_blas"]
        calls = {(problem["m"], problem["n"], problem["k"]): problem for problem in report["problems"]}
        assert {shape: problem["calls"] for shape, problem in calls.items()} == {(3, 3, 4): 2, (4, 4, 3): 1}
        for problem in calls.values():
            assert sum(problem["emulated_calls"].values()) == problem["calls"] and problem["native_calls"] == 0
            assert problem["seconds"] > 0 and problem["failed_calls"] == 0 and "fp64" in problem["why"]

    def test_a_report_of_native_calls_says_why(self, preloaded):
        report = preloaded.report(*python(THREE_CALLS), policy="native")
        assert {(problem["native_calls"], problem["why"]) for problem in report["problems"]} == {
            (2, "policy native forwards every call"), (1, "policy native forwards every call")}

    def test_special_values_are_counted(self, preloaded):
        code = "import numpy\na = numpy.eye(5)\na[2, 2] = numpy.nan\nassert numpy.isnan(a @ numpy.ones((5, 5))).sum() == 5\n"
        report = preloaded.report(*python(code), policy="emulate")
        assert [problem["calls_with_special_values"] for problem in report["problems"]] == [1]

    def test_report_of_a_dash_prints_a_table_to_stderr(self, preloaded):
        lines = preloaded.ok(*python(THREE_CALLS), report="-", policy="emulate").stderr.splitlines()
        assert lines[0] == "kintsugi: calls of BLAS under policy emulate" and lines[2].endswith("  all calls: 3 emulated, 0 native")
        rows = lines[3:5]
        assert any(" 2 " in row and "cblas_dgemm N N, m = 3, n = 3, k = 4, row-major: " in row for row in rows)
        assert float(rows[0].split()[1]) >= float(rows[1].split()[1]), "sorted by time"
        assert all(line.endswith("go to the next BLAS") for line in lines[5:])

    def test_each_process_writes_its_own_report(self, preloaded):
        preloaded.ok(*python(THREE_CALLS), report=str(preloaded.folder / "report-%p.json"))
        (path,) = preloaded.folder.glob("report-*.json")
        assert path.name == f"report-{read_report(path)['process']}.json"

    def test_a_program_without_products_writes_nothing(self, preloaded):
        preloaded.ok("true", report=str(preloaded.folder / "report.json"))
        assert not (preloaded.folder / "report.json").exists()

    def test_a_report_that_cannot_be_written_is_named_on_stderr(self, preloaded):
        result = preloaded.ok(*python(THREE_CALLS), report="/nowhere/report.json")
        assert result.stderr == 'kintsugi: KINTSUGI_REPORT = "/nowhere/report.json" cannot be written: No such file or directory\n'

    def test_explain_has_a_line_for_each_problem(self, preloaded):
        lines = preloaded.ok(*python(THREE_CALLS), explain="1", policy="force").stderr.splitlines()
        assert [line.split(":")[1] for line in lines] == [
            " cblas_dgemm N N, m = 3, n = 3, k = 4, row-major", " cblas_dgemm N N, m = 4, n = 4, k = 3, row-major"]
        assert all("Accuracy fp64 allows" in line for line in lines)

    @pytest.mark.parametrize("name, value, accepted", [
        ("policy", "emulat", "auto, emulate, native, force"), ("accuracy", "fp65", "fp32, fp64"), ("explain", "yes", "0, 1"),
        ("threads", "many", "0 ... 4096")])
    def test_a_malformed_setting_switches_emulation_off(self, preloaded, name, value, accepted):
        alone = preloaded.ok(*python(THREE_CALLS), preload=False)
        result = preloaded.ok(*python(THREE_CALLS), **{"policy": "emulate", name: value})
        assert result.stdout == alone.stdout
        (line,) = result.stderr.splitlines()
        assert line.startswith("kintsugi: ") and value in line and accepted in line and line.endswith("; emulation is off")

    def test_strict_ends_the_program_before_its_first_product(self, preloaded):
        result = preloaded(*python("print('begun', flush=True)\n" + THREE_CALLS), policy="emulat", strict="1")
        assert result.returncode == 2 and result.stdout == "begun\n"
        assert result.stderr.endswith("; KINTSUGI_STRICT = 1 ends the program\n") and result.stderr.count("\n") == 1

    def test_strict_accepts_the_variables_of_the_drop_in(self, preloaded):
        preloaded.report(*python(THREE_CALLS), strict="1", explain="0", policy="force")


# Multiplies by a BLAS that a preload does not replace: RTLD_DEEPBIND makes the BLAS prefer its own names, and the program
# looks dgemm_ up by the BLAS's handle.
OUT_OF_REACH = r"""
import ctypes, os
library = ctypes.CDLL("libblas.so.3", os.RTLD_LOCAL | os.RTLD_DEEPBIND | os.RTLD_NOW)
i, d = (lambda value: ctypes.byref(ctypes.c_int(value))), (lambda value: ctypes.byref(ctypes.c_double(value)))
a, c, n = (ctypes.c_double * 4)(1, 2, 3, 4), (ctypes.c_double * 4)(), ctypes.c_char_p(b"N")
library.dgemm_(n, ctypes.c_char_p(b"T"), i(2), i(2), i(2), d(1), a, i(2), a, i(2), d(0), c, i(2))
assert list(c) == [10, 14, 14, 20]
"""


def has_blas():
    try:
        return bool(ctypes.CDLL("libblas.so.3"))
    except OSError:
        return False


@pytest.mark.skipif(not has_blas(), reason="no libblas.so.3")
@pytest.mark.parametrize("policy", ["auto", "native", "force"])
def test_an_audit_library_intercepts_calls_that_a_preload_misses(preloaded, policy):
    report = preloaded.folder / "report.json"
    preloaded.ok(*python(OUT_OF_REACH), policy=policy, report=str(report))
    assert not report.exists()
    preloaded.environment["LD_AUDIT"] = str(pathlib.Path(LIBRARY).with_name("libkintsugi_blas_audit.so"))
    (problem,) = preloaded.report(*python(OUT_OF_REACH), policy=policy)["problems"]
    assert problem["symbol"] == "dgemm_" and problem["calls"] == 1
    assert problem["native_calls"] == (0 if policy == "force" else 1)


@pytest.mark.skipif(not has_blas() or not os.environ.get("TESTED_PROGRAM"), reason="no libblas.so.3, or no program")
def test_kintsugi_run_sets_the_audit_library(preloaded):
    words = [os.environ["TESTED_PROGRAM"], "run", "--blas", "--audit", "--", *python(OUT_OF_REACH)]
    (problem,) = preloaded.report(*words, preload=False, policy="force")["problems"]
    assert problem["symbol"] == "dgemm_" and problem["native_calls"] == 0


@needs_shared_blas
def test_an_audit_library_changes_no_results(preloaded):
    alone = preloaded.ok(*python(PRODUCTS), preload=False)
    emulated = preloaded.ok(*python(PRODUCTS), policy="emulate")
    preloaded.environment["LD_AUDIT"] = str(pathlib.Path(LIBRARY).with_name("libkintsugi_blas_audit.so"))
    assert preloaded.ok(*python(PRODUCTS), preload=False).stdout == alone.stdout
    assert preloaded.ok(*python(PRODUCTS), policy="emulate").stdout == emulated.stdout


PILAENV = "int pilaenv_(const int* context, const char* type) { return context == 0 && *type == 'D' ? 77 : -1; }\n"


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("settings, alone, beside_another", [
    ({"policy": "auto"}, 32, 77), ({"policy": "native", "accuracy": "exact"}, 32, 77), ({"policy": "emulat"}, 32, 77),
    ({"policy": "force"}, 512, 512), ({"policy": "emulate"}, 512, 512), ({"accuracy": "exact"}, 512, 512)])
def test_pilaenv_gives_larger_blocks_where_products_are_emulated(preloaded, settings, alone, beside_another):
    (preloaded.folder / "next.c").write_text(PILAENV)
    preloaded.ok("cc", "-shared", "-fPIC", "next.c", "-o", "libnext.so", preload=False)
    ask = "print(ctypes.CDLL(None).pilaenv_(None, b'D'))"
    assert int(preloaded.ok(*python(f"import ctypes; {ask}"), **settings).stdout) == alone
    load = "import ctypes; library = ctypes.CDLL('./libnext.so')"
    assert int(preloaded.ok(*python(f"{load}; {ask}"), **settings).stdout) == beside_another


FORTRAN = """
program caller
  double precision :: a(2, 3) = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [2, 3]), c(2, 2) = -1
  call dgemm('N', 'T', 2, 2, 3, 1d0, a, 2, a, 2, 0d0, c, 2)
  if (any(c /= reshape([35d0, 44d0, 44d0, 56d0], [2, 2]))) stop 1
  call dgemm('N', 'T', 2, 2, 3, 1d0, a, 1, a, 2, 0d0, c, 2)
end program
subroutine xerbla(name, number)
  character(len=*) :: name
  integer :: number
  print '(a, i3)', name, number
end subroutine
"""


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no gfortran")
@pytest.mark.parametrize("policy", ["auto", "force"])
def test_a_fortran_programs_own_xerbla_is_called(preloaded, policy):
    (preloaded.folder / "caller.f90").write_text(FORTRAN)
    preloaded.ok("gfortran", "caller.f90", "-o", "caller", "-l:libblas.so.3", preload=False)
    report = preloaded.folder / "report.json"
    result = preloaded.ok("./caller", policy=policy, report=str(report))
    assert result.stdout.split() == ["DGEMM", "8"] and result.stderr == ""
    (problem,) = read_report(report)["problems"]
    assert problem["symbol"] == "dgemm_" and problem["calls"] == 1
    assert (problem["native_calls"] == 0) == (policy == "force")


def test_kintsugi_run_preloads_the_drop_in(preloaded):
    program = os.environ.get("TESTED_PROGRAM")
    if not program:
        pytest.skip("configured without the program")
    report = preloaded.folder / "report.json"
    preloaded.ok(program, "run", "--blas", "--", *python(THREE_CALLS), preload=False, report=str(report))
    assert len(read_report(report)["problems"]) == 2 or not has_shared_blas()
    assert preloaded(program, "run", "--blas", "--", "sh", "-c", "exit 7", preload=False).returncode == 7
    missing = preloaded(program, "run", "--blas", "--", "no-such-program", preload=False)
    assert missing.returncode == 2 and missing.stderr == "kintsugi: no-such-program: cannot be run: No such file or directory\n"
