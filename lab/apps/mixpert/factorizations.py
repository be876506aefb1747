"""HPL-AI and blocked Cholesky factorization."""

import numpy

from mixpert.arrays import uniform
from mixpert.sites import Program


def _native_product(device, a, b):
    out = device.xp.empty((a.shape[0], b.shape[1]), a.dtype)
    device.native(a, b, 1, 0, out)
    return out


def _inverse(device, matrix, steps):
    """Newton's iteration X <- X (2 I - A X) from the inverse of the diagonal.

    It converges for diagonally dominant and for triangular A, for those of n rows after log2(n) steps.
    """
    identity = device.xp.eye(matrix.shape[0], dtype=matrix.dtype)
    inverse = identity / device.xp.diagonal(matrix)[:, None]
    for _ in range(steps):
        inverse = _native_product(device, inverse, 2 * identity - _native_product(device, matrix, inverse))
    return inverse


class HplAi:
    """A x = b of a diagonally dominant A: block LU in FP32 at the levels of the sites, GMRES in FP64 after it.

    The result is HPL-AI's scaled residual, |A x - b| / (eps (|A| |x| + |b|) n) in the maximum norm, below 16 if valid.
    """

    name, limit, sites = "hpl-ai", 16.0, ("solve_panel", "update_trailing")
    small, paper = (192,), (32768,)

    def __init__(self, device, n, seed):
        self.device, self.xp, self.n = device, device.xp, n
        self.block = min(1024, max(16, n // 8))
        self.a = uniform(self.xp, (n, n), 2 * seed, -0.5, 0.5)
        # HPL-AI's matrix: the diagonal is the sum of the row's magnitudes.
        self.a[self.xp.arange(n), self.xp.arange(n)] = self.xp.abs(self.a).sum(axis=1)
        rows = 2048  # at a time, so that no second matrix is held
        row_sums = [self.xp.abs(self.a[i:i + rows]).sum(axis=1, dtype="float64") for i in range(0, n, rows)]
        self.norm = float(self.xp.concatenate(row_sums).max())
        self.b = uniform(self.xp, (n, 1), 2 * seed + 1, -0.5, 0.5)[:, 0].astype("float64")

    def factorize(self, sites, matrix):
        """Block LU in place: L has unit diagonal blocks, and the inverses of U's diagonal blocks are returned."""
        inverses = []
        for first in range(0, self.n, self.block):
            row = min(first + self.block, self.n)
            inverses.append(_inverse(self.device, matrix[first:row, first:row], 5))
            if row == self.n:
                break
            panel = sites.product("solve_panel", matrix[row:, first:row], inverses[-1])
            matrix[row:, first:row] = panel
            sites.product("update_trailing", panel, matrix[first:row, row:], alpha=-1, beta=1, out=matrix[row:, row:])
        return inverses

    def run(self, sites, dtype="float32"):
        factors = self.a.astype(dtype)
        inverses = self.factorize(sites, factors)
        return self._refine(lambda r: self._solve(factors, inverses, r))

    def _solve(self, factors, inverses, right):
        """U^-1 L^-1 right, in the precision of the factors."""
        x = right.astype(factors.dtype)
        starts = range(0, self.n, self.block)
        for first in starts:
            row = min(first + self.block, self.n)
            x[row:] -= factors[row:, first:row] @ x[first:row]
        for first, inverse in zip(reversed(starts), reversed(inverses)):
            row = min(first + self.block, self.n)
            x[first:row] = inverse @ (x[first:row] - factors[first:row, row:] @ x[row:])
        return x.astype("float64")

    def _times_a(self, x):
        """A x in FP64."""
        return self.device.times_vector(self.a, x)

    def _refine(self, precondition, steps=5, restarts=4):
        """GMRES with `steps` vectors, preconditioned from the left, started again until the residual is valid."""
        x = precondition(self.b)
        for _ in range(restarts):
            if self.scaled_residual(x) < 1:
                break
            x = x + self._gmres_cycle(precondition, self.b - self._times_a(x), steps)
        return x

    def _gmres_cycle(self, precondition, residual, steps):
        xp = self.xp
        first = precondition(residual)
        norm = float(xp.linalg.norm(first))
        if not norm > 0 or not numpy.isfinite(norm):
            return xp.zeros_like(first)
        basis, hessenberg = [first / norm], numpy.zeros((steps + 1, steps))
        for j in range(steps):
            w = precondition(self._times_a(basis[j]))
            for i in range(j + 1):
                hessenberg[i, j] = float(basis[i] @ w)
                w = w - hessenberg[i, j] * basis[i]
            hessenberg[j + 1, j] = float(xp.linalg.norm(w))
            if hessenberg[j + 1, j] <= 1e-14 * norm:
                steps = j + 1
                break
            basis.append(w / hessenberg[j + 1, j])
        right = numpy.zeros(steps + 1)
        right[0] = norm
        weights = numpy.linalg.lstsq(hessenberg[:steps + 1, :steps], right, rcond=None)[0]
        return sum(float(weight) * vector for weight, vector in zip(weights, basis))

    def scaled_residual(self, x):
        xp = self.xp
        scale = self.norm * float(xp.abs(x).max()) + float(xp.abs(self.b).max())
        return float(xp.abs(self._times_a(x) - self.b).max()) / (2.0**-53 * scale * self.n)

    def error(self, result, _reference):
        return self.scaled_residual(result)


class Cholesky(Program):
    """A = L L^T, right-looking with one block column of look-ahead; four sites, those of blocked_cholesky.cpp."""

    name, limit = "cholesky", 5e-4
    sites = ("solve_panel", "update_diagonal", "update_panel", "update_trailing")
    small, paper = (128,), (32768,)

    def __init__(self, device, n, seed):
        self.device, self.xp, self.n = device, device.xp, n
        self.block = min(1024, max(16, n // 8))
        m = uniform(self.xp, (n, n), seed, -1, 1)
        self.a = self.xp.empty_like(m)
        device.native(m, m.T, 1.0 / n, 0, self.a)
        self.a[self.xp.arange(n), self.xp.arange(n)] += 1

    def run(self, sites, dtype="float32"):
        a, block = self.a.astype(dtype), self.block
        for first in range(0, self.n, block):
            row = min(first + block, self.n)
            diagonal = self.xp.linalg.cholesky(a[first:row, first:row])
            a[first:row, first:row] = diagonal
            if row == self.n:
                break
            inverse = _inverse(self.device, diagonal, int(numpy.ceil(numpy.log2(block))))
            panel = sites.product("solve_panel", a[row:, first:row], inverse.T)
            a[row:, first:row] = panel
            below = min(row + block, self.n)
            self._update(sites, a, panel, row, below)
        return self.xp.tril(a)

    def _update(self, sites, a, panel, row, below):
        """A(row:, row:) -= panel panel^T: the next diagonal block, the panel under it, and the rest."""
        size = below - row
        sites.product("update_diagonal", panel[:size], panel[:size].T, -1, 1, a[row:below, row:below])
        if below == self.n:
            return
        sites.product("update_panel", panel[size:], panel[:size].T, -1, 1, a[below:, row:below])
        sites.product("update_trailing", panel[size:], panel[size:].T, -1, 1, a[below:, below:])
