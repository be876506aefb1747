"""Products with vectors in numpy and scipy programs: a set accuracy covers them, and bits do not depend on threads."""

import pytest
from test_programs import needs_shared_blas, python

# Every way in which numpy multiplies the row (1, 1e20, -1e20) by ones. Plain numpy gives 0.
ROWS = r"""
import numpy
for kind, big in (("f4", 1e10), ("f8", 1e20), ("c8", 1e10), ("c16", 1e20)):
    row = numpy.array([1, big, -big], kind)
    a, ones = numpy.array([row, row]), numpy.ones(3, kind)
    wide = numpy.ones((3, 4), kind)[:, ::2]  # a column of it has an increment
    sums = [a @ ones, a @ numpy.ones((3, 1), kind), numpy.ones((1, 3), kind) @ a.T, ones @ a.T, a[:, ::-1] @ ones, a @ wide[:, 0],
            numpy.dot(row, ones), row @ ones, numpy.inner(row, ones), numpy.vdot(row, ones), numpy.dot(row[::-1], ones),
            numpy.asfortranarray(a) @ ones, numpy.matmul(a[None], ones), numpy.tensordot(a, ones, 1), numpy.linalg.multi_dot([a, wide, numpy.ones(2, kind)]) / 2]
    if hasattr(numpy, "vecdot"):
        sums += [numpy.vecdot(a, ones), numpy.matvec(a, ones), numpy.vecmat(ones, a.T)]
    print(*{complex(s) for sum in sums for s in numpy.ravel(sum)})
"""

# Products, vectors, einsum, and least squares by normal equations. Prints a hash of the bits of all results.
PROGRAM = r"""
import hashlib, numpy
random = numpy.random.default_rng(11)
digest = hashlib.sha256()
def note(*results):
    for result in results:
        digest.update(numpy.ascontiguousarray(result).tobytes())
    return results[0]
for kind in ("f4", "f8", "c8", "c16"):
    draw = lambda *shape: (random.standard_normal(shape) * 2.0 ** random.integers(-9, 9, shape) + (1j * random.standard_normal(shape) if kind[0] == "c" else 0)).astype(kind)
    a, b, x, y = draw(300, 200), draw(200, 170), draw(200), draw(300)
    long = draw(2, 100_000)
    note(a @ b, a @ a.T, a @ x, y @ a, x[::2] @ a[1, ::2], long[0] @ long[1], numpy.vdot(long[0], long[1]), numpy.outer(y, x), numpy.inner(a, b.T))
    note(numpy.einsum("ij,jk,k->i", a, b, b[0], optimize=True), numpy.einsum("ij,kj->ik", a, a, optimize=True), numpy.tensordot(a, b, 1))
    # Least squares: Cholesky's factorization of the normal equations, row by row, then substitution.
    design, right = draw(400, 6), draw(400)
    normal, projected = design.conj().T @ design, design.conj().T @ right
    factor, n = numpy.zeros_like(normal), len(normal)
    for j in range(n):
        factor[j, j] = numpy.sqrt((normal[j, j] - numpy.vdot(factor[j, :j], factor[j, :j])).real)
        factor[j + 1:, j] = (normal[j + 1:, j] - factor[j + 1:, :j] @ factor[j, :j].conj()) / factor[j, j]
    z, solution = numpy.zeros_like(projected), numpy.zeros_like(projected)
    for i in range(n):
        z[i] = (projected[i] - factor[i, :i] @ z[:i]) / factor[i, i]
    for i in reversed(range(n)):
        solution[i] = (z[i] - factor[i + 1:, i].conj() @ solution[i + 1:]) / factor[i, i]
    note(solution, design @ solution - right)
    unit = 2.0**-24 if kind in ("f4", "c8") else 2.0**-53
    wide = design.astype("c16"), right.astype("c16")
    residual = wide[0].conj().T @ (wide[0] @ solution.astype("c16") - wide[1])
    assert (abs(residual) < 1e4 * unit * (abs(wide[0]).T @ (abs(wide[0]) @ abs(solution) + abs(wide[1])))).all(), kind
try:
    import scipy.linalg.blas as blas
except ImportError:
    blas = None
if blas:
    for letter, kind in zip("sdcz", ("f4", "f8", "c8", "c16")):
        draw = lambda *shape: (random.standard_normal(shape) + (1j * random.standard_normal(shape) if kind[0] == "c" else 0)).astype(kind)
        a, x, y = numpy.asfortranarray(draw(250, 250)), draw(250), draw(250)
        call = lambda name, *arguments, **words: note(getattr(blas, letter + name)(*arguments, **words))
        call("gemv", 1.5, a, x, beta=0.5, y=y, trans=1)
        call("gemv", 1.5, a, x, incx=-1)
        call("ger" if letter in "sd" else "gerc", 0.5, x, y, a=a)
        call("dot" if letter in "sd" else "dotc", x, y)
        call("symv" if letter in "sd" else "hemv", 0.5, a, x, beta=0.25, y=y)
print(digest.hexdigest())
"""


@needs_shared_blas
class TestVectors:
    @pytest.mark.parametrize("settings", [{}, {"policy": "emulate"}, {"policy": "force"}])
    def test_exact_sums_of_rows_that_cancel(self, preloaded, settings):
        assert "0j" in preloaded.ok(*python(ROWS), preload=False).stdout.split()
        result = preloaded.ok(*python(ROWS), accuracy="exact", **settings)
        assert result.stdout.split() == ["(1+0j)"] * 4 and result.stderr == ""

    @pytest.mark.parametrize("settings", [{}, {"accuracy": "fp32"}, {"accuracy": "fp64"}, {"accuracy": "exact", "policy": "native"}])
    def test_they_are_forwarded_where_no_accuracy_asks(self, preloaded, settings):
        alone = preloaded.ok(*python(ROWS), preload=False)
        assert preloaded.ok(*python(ROWS), **settings).stdout == alone.stdout

    @pytest.mark.parametrize("tolerance, native_calls", [("1e-15", 0), ("1e-8", 1)])
    def test_a_tolerance_that_native_misses_is_kept(self, preloaded, tolerance, native_calls):
        code = ("import numpy\nfrom fractions import Fraction\nx, y = numpy.random.default_rng(4).standard_normal((2, 5000))\nfound = float(x @ y)\n"
                "exact = sum(Fraction(p) * Fraction(q) for p, q in zip(x, y))\n"
                f"assert abs(found - exact) <= ({tolerance} + 2.0**-53) * sum(abs(Fraction(p) * Fraction(q)) for p, q in zip(x, y))\n")
        report = preloaded.report(*python(code), accuracy=tolerance)
        assert [problem["native_calls"] for problem in report["problems"] if problem["symbol"] == "cblas_ddot"] == [native_calls]

    @pytest.mark.parametrize("accuracy", ["exact", "reproducible"])
    def test_bits_do_not_depend_on_threads(self, preloaded, accuracy):
        hashes = set()
        for count in ("1", "2", "4"):
            preloaded.environment["OPENBLAS_NUM_THREADS"] = count
            result = preloaded.ok(*python(PROGRAM), accuracy=accuracy, threads=count)
            assert result.stderr == ""
            hashes.add(result.stdout)
        assert len(hashes) == 1
