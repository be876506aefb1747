"""The drop-ins tell users of settings that are not kept, misspelt variables, calls that are not covered, runs without a product."""

import os
import pathlib
import shutil
import xml.etree.ElementTree

import pytest
from conftest import read_report
from test_cublas_programs import program as cublas_program  # noqa: F401, a fixture
from test_cublas_programs import read_report as read_cublas_report
from test_programs import THREE_CALLS, needs_shared_blas, python

# Settings that are not kept, and a part of the reason.
NOT_KEPT = [({"scheme": "nope"}, 'there is no scheme "nope"'),
            ({"scheme": "fp16x3"}, "scheme fp16x3 does not take fp64 operands"),
            ({"accuracy": "1e-40"}, "fp64 is kept"),
            ({"accuracy": "dd"}, "fp64 is kept"),
            ({"accumulator": "nope", "policy": "emulate"}, 'there is no accumulator "nope"'),
            ({"engine": "nope"}, 'there is no engine "nope"'),
            ({"policy": "emulate", "engine": "nope"}, 'there is no engine "nope"'),
            ({"policy": "emulate", "cpu_blas": "/nowhere"}, 'KINTSUGI_CPU_BLAS = "/nowhere" cannot be opened'),
            ({"policy": "emulate", "workspace_limit": "1"}, "a workspace limit of 1 bytes is too small")]


# Products of two sizes, of 1 + 2^-60 in each element, in the rounding mode up of the platform.
ROUNDED_UP = """import ctypes, numpy
matrices = []
for n in (8, 70):
    a = numpy.zeros((n, n))
    a[:, 0], a[:, 1] = 1, 2.0**-60
    matrices.append((a, numpy.ones((n, n))))
ctypes.CDLL("libm.so.6").fesetround(0x800)
for a, b in matrices:
    print(float((a @ b)[3, 5]).hex())
"""


def own_lines(text):
    return [line for line in text.splitlines() if line.startswith("kintsugi: ")]


@needs_shared_blas
class TestSettings:
    @pytest.mark.parametrize("settings, reason", NOT_KEPT)
    def test_a_setting_that_is_not_kept_is_one_line(self, preloaded, settings, reason):
        alone = preloaded.ok(*python(THREE_CALLS), preload=False)
        result = preloaded.ok(*python(THREE_CALLS), **settings)
        (line,) = result.stderr.splitlines()
        assert line.startswith("kintsugi: cblas_dgemm: ") and reason in line and result.stdout == alone.stdout

    @pytest.mark.parametrize("settings, reason", NOT_KEPT)
    def test_the_report_and_its_table_have_the_reason(self, preloaded, settings, reason):
        report = preloaded.report(*python(THREE_CALLS), **settings)
        assert len(report["problems"]) == 2 and all(reason in problem["why"] for problem in report["problems"])
        rows = [line for line in preloaded.ok(*python(THREE_CALLS), **settings, report="-").stderr.splitlines() if ": native; " in line]
        assert len(rows) == 2 and all(reason in row for row in rows)

    @pytest.mark.parametrize("settings, reason", NOT_KEPT)
    def test_strict_ends_the_program_before_that_product(self, preloaded, settings, reason):
        result = preloaded(*python("print('begun', flush=True)\n" + THREE_CALLS), **settings, strict="1")
        assert result.returncode == 2 and result.stdout == "begun\n"
        (line,) = result.stderr.splitlines()
        assert reason in line and line.endswith("; KINTSUGI_STRICT = 1 ends the program")

    def test_offload_that_cannot_be_forced_is_one_line(self, preloaded):
        (line,) = preloaded.ok(*python(THREE_CALLS), offload="force", cuda_visible_devices="").stderr.splitlines() or [""]
        assert "Offload force, but the host multiplies: " in line or os.path.exists("/dev/nvidia0")

    @pytest.mark.parametrize("settings", [{}, {"policy": "auto", "workspace_limit": "1"}, {"policy": "native", "engine": "nope"}])
    def test_nothing_is_said_where_nothing_was_asked_for(self, preloaded, settings):
        assert preloaded.ok(*python(THREE_CALLS), **settings).stderr == ""

    def test_other_emulations_leave_rounding_modes_to_the_next_blas(self, preloaded):
        alone = preloaded.ok(*python(ROUNDED_UP), preload=False)
        result = preloaded.ok(*python(ROUNDED_UP), policy="emulate")
        (line,) = result.stderr.splitlines()
        assert "the calling thread's rounding mode is up" in line and result.stdout == alone.stdout
        strict = preloaded(*python(ROUNDED_UP), policy="emulate", strict="1")
        assert strict.returncode == 2 and "rounding mode is up" in strict.stderr
        assert preloaded.ok(*python(ROUNDED_UP), policy="emulate", rounding="nearest").stderr == ""

    def test_a_product_that_was_forwarded_in_another_mode_is_emulated_again(self, preloaded):
        code = """import ctypes, hashlib, numpy
a = numpy.random.default_rng(3).standard_normal((70, 70))
set_mode = ctypes.CDLL("libm.so.6").fesetround
for mode in %s:
    set_mode(mode)
    c = a @ a
print(hashlib.sha256(c.tobytes()).hexdigest())
"""
        emulated = preloaded.ok(*python(code % "[0]"), policy="emulate")
        assert emulated.stdout != preloaded.ok(*python(code % "[0]"), policy="native").stdout
        assert preloaded.ok(*python(code % "[0x800, 0]"), policy="emulate").stdout == emulated.stdout

    def test_exact_products_round_in_the_threads_mode(self, preloaded):
        result = preloaded.ok(*python(ROUNDED_UP), accuracy="exact")
        assert result.stdout.split() == ["0x1.0000000000001p+0"] * 2 and result.stderr == ""

    def test_emulated_products_raise_numpys_warnings(self, preloaded):
        code = "import numpy\na = numpy.full((40, 40), 1e200)\na @ a\nb = numpy.full((40, 40), numpy.inf)\nb @ (0 * a)\n"
        alone = preloaded.ok(*python(code), preload=False)
        result = preloaded.ok(*python(code), policy="emulate")
        assert "overflow encountered in matmul" in result.stderr and "invalid value encountered in matmul" in result.stderr
        assert result.stderr == alone.stderr

    def test_each_product_of_a_batch_and_each_routine_is_told_of(self, preloaded):
        code = "import scipy.linalg.blas as blas, numpy\nblas.dsyrk(1.0, numpy.ones((5, 3)))\n"
        pytest.importorskip("scipy")
        (line,) = preloaded.ok(*python(code), accuracy="1e-40").stderr.splitlines()
        assert "dsyrk" in line and "fp64 is kept" in line

    @pytest.mark.parametrize("settings, reason", [({"policy": "emulat"}, 'KINTSUGI_POLICY = "emulat"'), ({"explain": "yes"}, 'KINTSUGI_EXPLAIN = "yes"'),
                                                  ({"threads": "many", "policy": "force"}, 'threads = "many"')])
    def test_a_report_names_a_malformed_setting(self, preloaded, settings, reason):
        report = preloaded.report(*python(THREE_CALLS), **settings)
        assert all(reason in problem["why"] and problem["native_calls"] == problem["calls"] for problem in report["problems"])
        assert len(report["problems"]) == 2

    @pytest.mark.parametrize("name, meant", [("ACURACY", "ACCURACY"), ("POLCY", "POLICY"), ("SHCEME", "SCHEME"), ("REPROT", "REPORT"),
                                             ("THREAD", "THREADS"), ("Accuracy", "ACCURACY")])
    def test_a_misspelt_variable_is_one_line_with_the_nearest_name(self, preloaded, name, meant):
        preloaded.environment[f"KINTSUGI_{name}"] = "1"
        assert preloaded.ok(*python(THREE_CALLS)).stderr == (
            f"kintsugi: the environment variable KINTSUGI_{name} names no setting; did you mean KINTSUGI_{meant}?\n")

    def test_variables_of_build_and_module_systems_are_not_taken_for_settings(self, preloaded):
        for name in ("ROOT", "DIR", "HOME", "PREFIX", "BASE", "PATH", "VERSION", "LIB", "LIBDIR", "LIBRARY", "LIBRARIES", "INCLUDE", "INCLUDE_DIR", "BIN",
                     "SRC", "BUILD", "BUILD_DIR", "TESTS", "MODULE", "MODULEFILE", "PYTHON", "CUDA_ARCH", "DEVICE_CODE", "NVCC", "FOUND", "INC", "SHARED"):
            preloaded.environment[f"KINTSUGI_{name}"] = "/opt/kintsugi"
        assert preloaded.ok(*python(THREE_CALLS)).stderr == ""


# numpy sends these to gemv and dot.
VECTORS = "import numpy\na = numpy.array([[1, 1e20, -1e20], [2, 3, 4]])\na @ numpy.ones(3)\nnumpy.dot(a[0], numpy.ones(3))\na @ numpy.ones((3, 1))\n"
# No accuracy covers these routines.
UNCOVERED = "import numpy, scipy.linalg.blas as blas\nblas.dnrm2(numpy.ones(3))\nblas.dtrsv(numpy.eye(3), numpy.ones(3))\n"

FORTRAN = """
program caller
  implicit none
  integer :: i
  double precision :: x(7) = [(0.1d0 * i, i = 1, 7)], y(7) = [(1d0 / i, i = 1, 7)], a(7, 7)
  real :: u(7) = [(0.1 * i, i = 1, 7)], v(7) = [(1.0 / i, i = 1, 7)]
  complex(kind(1d0)) :: z(7), w(7)
  complex :: p(7), q(7)
  double precision, external :: ddot, dsdot, dnrm2, dznrm2, dzasum
  real, external :: sdot, sdsdot, scnrm2
  complex(kind(1d0)), external :: zdotc, zdotu
  complex, external :: cdotc
  z = cmplx(x, y, kind(1d0)); w = cmplx(y, -x, kind(1d0)); p = cmplx(u, v); q = cmplx(v, u)
  do i = 1, 2
    print *, ddot(7, x, 1, y, 1), dsdot(7, u, 1, v, 1), sdot(7, u, 1, v, 1), sdsdot(7, 0.5, u, 1, v, 1)
    print *, zdotc(7, z, 1, w, 1), zdotu(7, z, 1, w, 1), cdotc(7, p, 1, q, 1)
    print *, dnrm2(7, x, 1), dznrm2(7, z, 1), dzasum(7, z, 1), scnrm2(7, p, 1)
  end do
  a = 0.5d0
  call dger(7, 7, 0.25d0, x, 1, y, 1, a, 7)
  call dgemv('N', 7, 7, 1.5d0, a, 7, x, 1, 0.5d0, y, 1)
  call dsymv('L', 7, 0.5d0, a, 7, x, 1, 2d0, y, 1)
  call dgbmv('T', 7, 7, 1, 1, 0.5d0, a, 7, x, 1, 2d0, y, 1)
  call dtrmv('U', 'N', 'N', 7, a, 7, x, 1)
  call dtrsv('L', 'T', 'N', 7, a, 7, y, 1)
  call daxpy(7, 2d0, x, 1, y, 1)
  print *, x, y
end program
"""
FORTRAN_ANSWERED = {"ddot_": 2, "dsdot_": 2, "sdot_": 2, "sdsdot_": 2, "zdotc_": 2, "zdotu_": 2, "cdotc_": 2, "dger_": 1, "dgemv_": 1, "dsymv_": 1}
FORTRAN_UNCOVERED = {"dnrm2_": 2, "dznrm2_": 2, "dzasum_": 2, "scnrm2_": 2, "dgbmv_": 1, "dtrmv_": 1, "dtrsv_": 1, "daxpy_": 1}

# Sums whose large terms cancel: exact ones are small integers.
EXACT_FORTRAN = """
program caller
  implicit none
  double precision :: x(3) = [1d0, 1d20, -1d20], y(3) = 1
  real :: u(3) = [1.0, 1e10, -1e10], v(3) = 1
  complex(kind(1d0)) :: z(3), w(3)
  complex :: p(3), q(3)
  double precision, external :: ddot, dsdot
  real, external :: sdot, sdsdot
  complex(kind(1d0)), external :: zdotc, zdotu
  complex, external :: cdotc, cdotu
  z = cmplx(x, x, kind(1d0)); w = y; p = cmplx(u, u); q = v
  if (ddot(3, x, 1, y, -1) /= 1 .or. dsdot(3, u, 1, v, 1) /= 1 .or. sdot(3, u, 1, v, 0) /= 1) stop 1
  if (sdsdot(3, 2.0, u, 1, v, 1) /= 3 .or. sdsdot(0, 2.0, u, 1, v, 1) /= 2 .or. ddot(-1, x, 1, y, 1) /= 0) stop 2
  if (zdotc(3, z, 1, w, 1) /= (1d0, -1d0) .or. zdotu(3, z, 1, w, 1) /= (1d0, 1d0)) stop 3
  if (cdotc(3, p, 1, q, 1) /= (1.0, -1.0) .or. cdotu(3, p, 1, q, 1) /= (1.0, 1.0)) stop 4
end program
"""

# A BLAS whose complex functions return their result by an address, as those of Intel's compilers do.
BY_ADDRESS = """
#ifdef LIBRARY
void zdotc_(double* result, const int* n, const double* x, const int* incx, const double* y, const int* incy) {
  result[0] = result[1] = 0;
  for (int i = 0; i < *n; ++i) {
    const double *a = x + 2 * i * *incx, *b = y + 2 * i * *incy;
    result[0] += a[0] * b[0] + a[1] * b[1], result[1] += a[0] * b[1] - a[1] * b[0];
  }
}
#else
void zdotc_(double* result, const int* n, const double* x, const int* incx, const double* y, const int* incy);
int main(void) {
  double result[2] = {7, 7}, x[4] = {1.5, 2.5, -1, 0.5}, y[4] = {1, 0, 2, 0};
  int n = 2, one = 1;
  for (int i = 0; i < 2; ++i) zdotc_(result, &n, x, &one, y, &one);
  return result[0] == -0.5 && result[1] == -3.5 ? 0 : 1;
}
#endif
"""


@pytest.fixture
def fortran(preloaded):
    """Compiles a Fortran program that is linked to the system's BLAS."""
    if not shutil.which("gfortran"):
        pytest.skip("no gfortran")

    def compile(source):
        (preloaded.folder / "caller.f90").write_text(source)
        preloaded.ok("gfortran", "caller.f90", "-o", "caller", "-l:libblas.so.3", preload=False)
    return compile


class TestUncoveredCalls:
    @needs_shared_blas
    @pytest.mark.parametrize("accuracy, lines", [("exact", 1), ("reproducible", 1), ("fp32", 0), ("fp64", 0), ("1e-14", 0)])
    def test_one_line_under_exact_and_reproducible(self, preloaded, accuracy, lines):
        pytest.importorskip("scipy")
        result = preloaded.ok(*python(UNCOVERED), accuracy=accuracy)
        assert result.stderr.count(f"dnrm2_: accuracy {accuracy} is kept by level 3, gemv, ") == len(result.stderr.splitlines()) == lines
        assert preloaded.ok(*python(UNCOVERED), accuracy=accuracy, policy="native").stderr == ""
        assert preloaded.ok(*python(VECTORS), accuracy=accuracy, strict="1").stderr == ""

    @needs_shared_blas
    def test_the_report_ends_with_a_line_of_them(self, preloaded):
        calls = preloaded.report(*python(VECTORS + THREE_CALLS))["uncovered_calls"]
        assert calls["cblas_ddot"] + calls["cblas_dgemv"] == 3
        last = preloaded.ok(*python(VECTORS + THREE_CALLS), report="-").stderr.splitlines()[-1]
        assert last.startswith("kintsugi: ") and "gemv" in last and "dot" in last and last.endswith(
            ": not emulated; routines of levels 1 and 2 go to the next BLAS")

    @needs_shared_blas
    def test_calls_of_many_threads_are_all_counted(self, preloaded):
        code = ("import numpy\nfrom concurrent.futures import ThreadPoolExecutor\nx = numpy.ones(5000)\n"
                "with ThreadPoolExecutor(8) as pool:\n    list(pool.map(lambda _: x @ x, range(4000)))\n" + THREE_CALLS)
        assert preloaded.report(*python(code))["uncovered_calls"]["cblas_ddot"] == 4000

    def test_results_and_arguments_are_those_of_the_next_blas(self, preloaded, fortran):
        fortran(FORTRAN)
        alone = preloaded.ok("./caller", preload=False).stdout
        assert preloaded.ok("./caller").stdout == alone
        path = preloaded.folder / "report.json"
        assert preloaded.ok("./caller", report=str(path)).stdout == alone
        report = read_report(path)
        assert report["uncovered_calls"] == FORTRAN_ANSWERED | FORTRAN_UNCOVERED and report["problems"] == []
        path.write_text("the report of a child")
        preloaded.ok("./caller", report=str(path))
        assert path.read_text() == "the report of a child", "a process without a product overwrites none"

    @pytest.mark.parametrize("accuracy", ["exact", "reproducible"])
    def test_an_accuracy_answers_routines_with_vectors(self, preloaded, fortran, accuracy):
        fortran(FORTRAN)
        report = preloaded.report("./caller", accuracy=accuracy)
        assert report["uncovered_calls"] == FORTRAN_UNCOVERED
        assert {problem["symbol"]: problem["calls"] for problem in report["problems"]} == FORTRAN_ANSWERED
        assert not any(problem["native_calls"] or problem["failed_calls"] for problem in report["problems"])

    def test_exact_functions_return_exact_sums(self, preloaded, fortran):
        fortran(EXACT_FORTRAN)
        assert preloaded("./caller").returncode != 0
        assert preloaded.ok("./caller", accuracy="exact").stderr == ""

    @pytest.mark.parametrize("letter", "sdcz")
    @pytest.mark.parametrize("settings", [{}, {"accuracy": "exact"}, {"accuracy": "reproducible"}])
    def test_the_reference_blass_testers_print_the_same(self, preloaded, letter, settings):
        """Debian's libblas-test calls every routine with all its arguments, wrong ones too."""
        folder = next(iter(pathlib.Path("/usr/lib").glob("*/blas/xblat2d")), pathlib.Path("/nowhere/xblat2d")).parent
        if not folder.is_dir():
            pytest.skip("no libblas-test")
        command = f"{folder}/xblat1{letter} && {folder}/xblat2{letter} < {folder}/{letter}blat2.in && cat {letter}blat2.out && rm {letter}blat2.out"
        alone = preloaded.ok("sh", "-c", command, preload=False)
        counted = preloaded.ok("sh", "-c", command, report="report-%p.json", **settings)
        assert "FAIL" not in counted.stdout and len(counted.stderr.splitlines()) == (2 if settings else 0)
        assert counted.stdout == alone.stdout
        reports = [read_report(path)["uncovered_calls"] for path in preloaded.folder.glob("report-*.json")]
        assert len(reports) == 2 and sum(map(len, reports)) > (14 if settings else 20)

    @pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
    @pytest.mark.parametrize("settings", [{}, {"accuracy": "exact"}, {"accuracy": "1e-3"}])
    def test_results_by_address_pass(self, preloaded, settings):
        (preloaded.folder / "program.c").write_text(BY_ADDRESS)
        preloaded.ok("cc", "-DLIBRARY", "-shared", "-fPIC", "program.c", "-o", "libnext.so", preload=False)
        preloaded.ok("cc", "program.c", "-o", "program", "-L.", "-lnext", "-Wl,-rpath,.", preload=False)
        preloaded.ok("./program", **settings)
        preloaded.ok("./program", report="report.json", **settings)
        report = read_report(preloaded.folder / "report.json")
        assert report["uncovered_calls"] == ({} if settings else {"zdotc_": 2})
        assert [problem["calls"] for problem in report["problems"]] == ([2] if settings else [])


class TestReport:
    def test_a_run_without_a_product_says_so_last(self, preloaded):
        line = preloaded.ok(*python("pass"), report="-").stderr.splitlines()[-1]
        assert line.startswith("kintsugi: no product of BLAS reached Kintsugi from python3") and "it loaded no BLAS library" in line

    @needs_shared_blas
    def test_it_names_the_blas_that_is_loaded(self, preloaded):
        lines = preloaded.ok(*python(VECTORS), report="-").stderr.splitlines()
        assert "blas" in lines[-1] and "is loaded, but no level-3 routine was called by name" in lines[-1] and "gemv" in lines[-2]

    @needs_shared_blas
    def test_it_may_be_a_page_and_each_call_a_line(self, preloaded):
        code = "import numpy\nfor _ in range(2): numpy.ones((9, 8)) @ numpy.ones((8, 7))\n"
        lines = preloaded.ok(*python(code), report="report.html", policy="emulate", verbose="1").stderr.splitlines()
        assert len(lines) == 2 and all("cblas_dgemm N N, m = 9, n = 7, k = 8, row-major: " in line and " s; " in line for line in lines)
        page = xml.etree.ElementTree.parse(preloaded.folder / "report.html").getroot()
        assert [cell.text for cell in page.iter() if cell.tag.endswith("}td")][:5] == ["cblas_dgemm", "N N 9 x 7 x 8", "2", "0", "0"]

    @needs_shared_blas
    def test_the_table_ends_after_20_rows(self, preloaded):
        code = "import numpy\nfor n in range(2, 25):\n    for _ in range(n): numpy.ones((n, 2)) @ numpy.ones((2, n + 1))\n"
        lines = preloaded.ok(*python(code), report="-", policy="emulate").stderr.splitlines()
        rows = [line for line in lines if "cblas_dgemm" in line]
        assert lines[2].split()[0] == str(sum(range(2, 25))) and lines[2].endswith("emulated, 0 native") and len(rows) == 20
        assert lines[23] == "kintsugi: 3 more problems; KINTSUGI_REPORT=FILE.json lists all"
        seconds = [float(row.split()[1]) for row in rows]
        assert seconds == sorted(seconds, reverse=True)

    @pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
    def test_kintsugi_run_names_a_static_program(self, preloaded):
        tool = os.environ.get("TESTED_PROGRAM")
        if not tool:
            pytest.skip("configured without the program")
        (preloaded.folder / "program.c").write_text("int main(void) { return 3; }\n")
        for option, name in (("-static", "static"), ("-static-pie", "position-independent"), ("-fPIE", "dynamic")):
            if preloaded("cc", option, "program.c", "-o", name, preload=False).returncode != 0:
                pytest.skip("no static C library")
            said = f"kintsugi: ./{name} is linked statically, so that the drop-in does not reach it: all products stay its own\n"
            result = preloaded(tool, "run", "--blas", "--", f"./{name}", preload=False)
            assert result.returncode == 3 and result.stderr == (said if "static" in option else "")
        (preloaded.folder / "kintsugi-test-script").write_text("#!/usr/bin/env static\n")
        (preloaded.folder / "kintsugi-test-script").chmod(0o755)
        preloaded.environment["PATH"] += f":{preloaded.folder}"
        assert "kintsugi-test-script is linked statically" in preloaded(tool, "run", "--blas", "--", "kintsugi-test-script", preload=False).stderr


PROBLEM = ["--product", "sgemm", "64", "48", "32"]
MATMULS = [("epilogue=160", "epilogue GELU_AUX without an auxiliary matrix"), ("compute=77", "compute type CUBLAS_COMPUTE_32F_FAST_TF32"),
           ("order=2", "order COL32, COL32, COL32"),
           ("count=3,count_of_b=1", "batch counts 3, 1, 3"), ("type=14", "types CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF"),
           ("scale=1", "scale type CUDA_R_64F"), ("epilogue=2", "epilogue RELU with small k"), ("epilogue=256", "epilogue BGRADA without a bias")]


class TestCublas:
    @pytest.mark.parametrize("members, reason", MATMULS)
    def test_a_forwarded_matmul_has_its_problem_and_the_field(self, cublas_program, members, reason):
        cublas_program("--matmul", members, report="report.json")
        (problem,) = read_cublas_report(cublas_program.folder / "report.json")["problems"]
        assert (problem["symbol"], problem["m"], problem["n"], problem["k"]) == ("cublasLtMatmul", 64, 48, 32)
        assert problem["reasons"] == {reason: 1} and problem["native_calls"] == 1
        (row,) = [line for line in cublas_program("--matmul", members, report="-").stderr.splitlines() if "cublasLtMatmul" in line]
        assert "m = 64, n = 48, k = 32" in row and row.endswith(f": cuBLAS; {reason}")

    @pytest.mark.parametrize("settings, reason", [({"scheme": "nope"}, 'there is no scheme "nope"'), ({"engine": "nope"}, 'there is no engine "nope"'),
                                                  ({"accuracy": "1e-40"}, "fp32 is kept"), ({"accuracy": "reproducible"}, "no plan: ")])
    def test_a_setting_that_is_not_kept_is_one_line(self, cublas_program, settings, reason):
        run = cublas_program(*PROBLEM, "--repeat", "2", **settings)
        (line,) = run.stderr.splitlines()
        assert line.startswith("kintsugi: cublasSgemm_v2: ") and reason in line and run.document["statuses"] == [0, 0]
        ended = cublas_program(*PROBLEM, **settings, strict="1", check=False)
        assert ended.returncode == 2 and ended.stderr.endswith("; KINTSUGI_STRICT = 1 ends the program\n") and not ended.document

    def test_a_report_names_a_malformed_setting(self, cublas_program):
        cublas_program(*PROBLEM, policy="emulated", report="report.json")
        (problem,) = read_cublas_report(cublas_program.folder / "report.json")["problems"]
        assert 'KINTSUGI_POLICY = "emulated" is not accepted' in next(iter(problem["reasons"]))

    def test_a_misspelt_variable_is_one_line(self, cublas_program):
        assert cublas_program(*PROBLEM, acuracy="exact").stderr == (
            "kintsugi: the environment variable KINTSUGI_ACURACY names no setting; did you mean KINTSUGI_ACCURACY?\n")

    def test_a_run_without_a_product_says_so(self, cublas_program):
        (line,) = cublas_program(report="-").stderr.splitlines()
        assert line.startswith("kintsugi: no product of cuBLAS reached Kintsugi from python3") and "is loaded, but no product" in line

    def test_the_table_has_totals_and_ends_after_20_rows(self, cublas_program):
        words = [word for n in range(1, 24) for word in ("--product", "sgemm", str(n), "5", "6")]
        lines = cublas_program(*words, "--repeat", "2", report="-", policy="native").stderr.splitlines()
        assert lines[2].split()[:3] == ["46", "0", "0"] and lines[2].endswith("all calls")
        assert len([line for line in lines if "cublasSgemm_v2" in line]) == 20
        assert lines[-1] == "kintsugi: 3 more problems; KINTSUGI_REPORT=FILE.json lists all"
