"""Correlation of genotypes, Sparkler, nearest neighbours and k-means."""

from mixpert.arrays import uniform
from mixpert.sites import Program


class Correlation(Program):
    """Pearson's correlation of vectors of genotypes, allele counts 0, 1 or 2, after CoMet's and Sparkler's pattern."""

    name, limit, sites = "correlation", 1e-5, ("gram",)
    small, paper = (48, 256), (8192, 32768)

    def __init__(self, device, vectors, samples, seed):
        self.device, self.xp = device, device.xp
        self.counts = self.xp.floor(uniform(self.xp, (vectors, samples), seed, 0, 3))

    def run(self, sites, dtype="float32"):
        xp, x = self.xp, self.counts.astype(dtype, copy=False)
        gram = sites.product("gram", x, x.T)
        sums = x.sum(axis=1)
        gram -= sums[:, None] * (sums / x.shape[1])[None, :]
        deviations = xp.sqrt(xp.diagonal(gram))
        gram /= deviations[:, None]
        gram /= deviations[None, :]
        return gram


class Sparkler(Program):
    """Sparkler's products C = A A^T and its reduction, a hash of C (github.com/wdj/sparkler, 2019).

    Each vector has two rows of A, as for the tables of CoMet's correlation coefficient. Row r is 1 in every
    (1 + r mod 499)-th field and 0 elsewhere, so the elements of C are counts. The vectors are divided among the
    processes of a ring: in each step a process multiplies its rows by those of the next one. They run one after
    another here. The hash reads each pair of vectors once; the number of processes does not change it.
    """

    name, limit, sites = "sparkler", 0.5, ("counts",)
    small, paper = (24, 512, 3), (4000, 90000, 1)  # the latter is Sparkler's first test case

    def __init__(self, device, vectors, fields, processes, seed):  # the matrix is the same for every seed
        self.device, self.xp, self.processes = device, device.xp, processes
        self.starts = [vectors * process // processes for process in range(processes + 1)]
        self.block = 2 * -(-vectors // processes)
        self.rows = self.xp.empty((self.starts[-2] + self.block, fields), "float32")
        field = self.xp.arange(fields, dtype="int32")
        for first in range(0, self.rows.shape[0], 512):  # at a time, so that the remainders take little memory
            part = self.rows[first:first + 512]
            part[...] = field % (1 + self.xp.arange(first, first + part.shape[0], dtype="int32") % 499)[:, None] == 0

    def run(self, sites, dtype="float32"):
        """Sparkler's hash after one iteration, modulo 2^64."""
        total = self.xp.zeros((), "uint64")
        for left in range(self.processes):
            # With an even number of processes the last step would meet each pair of blocks twice.
            is_short = self.processes % 2 == 0 and left >= self.processes // 2
            for step in range((self.processes + 2) // 2 - is_short):
                right = (left + step) % self.processes
                a, b = (self.rows[first:first + self.block].astype(dtype, copy=False)
                        for first in (self.starts[left], self.starts[right]))
                total += self._hash(sites.product("counts", a, b.T), left, right)
        return int(total)

    def _hash(self, counts, left, right):
        """The sum of 1 + (v r c mod 2^40) over elements v of row r and column c; in a diagonal block where r < c."""
        xp, total = self.xp, self.xp.zeros((), "uint64")
        columns = xp.arange(self.starts[right], self.starts[right + 1], dtype="uint64")
        for first in range(self.starts[left], self.starts[left + 1], 512):
            rows = xp.arange(first, min(first + 512, self.starts[left + 1]), dtype="uint64")
            offset = first - self.starts[left]
            values = counts[offset:offset + len(rows), :len(columns)].astype("uint64")
            hashes = 1 + (values * rows[:, None] * columns % 2**40)
            total += (hashes * (rows[:, None] < columns) if left == right else hashes).sum()
        return total

    def error(self, result, reference):
        """0 for the hash of exact counts, 1 for any other."""
        return float(result != reference)


class Neighbours(Program):
    """Distances to the nearest of `points` for each of `queries`, sqrt(|q|^2 - 2 q.p + |p|^2), after Garcia et al. (2010)."""

    name, limit, sites = "nearest-neighbours", 1e-5, ("distances",)
    small, paper = (40, 96, 64), (8192, 32768, 4096)
    neighbours = 16

    def __init__(self, device, queries, points, dimensions, seed):
        self.device, self.xp = device, device.xp
        self.queries = uniform(self.xp, (queries, dimensions), 2 * seed)
        self.points = uniform(self.xp, (points, dimensions), 2 * seed + 1)

    def run(self, sites, dtype="float32"):
        xp = self.xp
        queries, points = self.queries.astype(dtype, copy=False), self.points.astype(dtype, copy=False)
        distances = xp.square(queries).sum(axis=1)[:, None] + xp.square(points).sum(axis=1)[None, :]
        sites.product("distances", queries, points.T, alpha=-2, beta=1, out=distances)
        nearest = xp.empty((queries.shape[0], min(self.neighbours, points.shape[0])), dtype)
        rows = xp.arange(queries.shape[0])
        for place in range(nearest.shape[1]):
            column = distances.argmin(axis=1)
            nearest[:, place] = distances[rows, column]
            distances[rows, column] = xp.inf
        return xp.sqrt(xp.maximum(nearest, 0))


class KMeans(Program):
    """Lloyd's iterations until the centroids stay; distances and new centroids, sums by the matrix of memberships, are products.

    The first centroids are points, each the farthest from those before (as in github.com/angelhof/gpus-kmeans, MixPert's
    source). Points come in blocks: distances take the memory of one block, and a centroid's sum of FP32 numbers is one of a few partial
    sums, which loses less than one long sum.
    """

    name, limit, sites = "k-means", 1e-4, ("distances", "centroids")
    small, paper = (240, 32, 6), (131072, 2048, 2048)
    iterations, blocks = 20, 4  # iterations at most

    def __init__(self, device, points, dimensions, clusters, seed):
        self.device, self.xp, self.clusters = device, device.xp, clusters
        centres = uniform(self.xp, (clusters, dimensions), 2 * seed)
        self.points = uniform(self.xp, (points, dimensions), 2 * seed + 1, 0, 0.1)
        for first in range(0, points, clusters):
            part = self.points[first:first + clusters]
            part += centres[:part.shape[0]]
        self.first = self._farthest_points()

    def _farthest_points(self):
        """As many points as clusters, from the first on; the next is the one that is farthest from all before."""
        xp, points = self.xp, self.points
        chosen, nearest, norms = [0], xp.inf, xp.square(points).sum(axis=1)
        while len(chosen) < self.clusters:
            last = points[chosen[-1]]
            nearest = xp.minimum(nearest, norms - 2 * (points @ last) + xp.square(last).sum())
            chosen.append(int(nearest.argmax()))
        return points[xp.asarray(chosen)]

    def run(self, sites, dtype="float32"):
        xp, points = self.xp, self.points.astype(dtype, copy=False)
        rows = -(-points.shape[0] // self.blocks)
        centroids = self.first.astype(dtype)
        for _ in range(self.iterations):
            sums, members = xp.zeros(centroids.shape, dtype), xp.zeros(self.clusters, dtype)
            for first in range(0, points.shape[0], rows):
                self._add_block(sites, points[first:first + rows], centroids, sums, members)
            before, centroids = centroids, sums / xp.maximum(members, 1)[:, None]
            if xp.linalg.norm(centroids - before) <= 1e-6:
                break
        return centroids

    def _add_block(self, sites, points, centroids, sums, members):
        """Adds each point to the sum of its nearest centroid, and counts it there."""
        xp = self.xp
        distances = xp.empty((points.shape[0], self.clusters), points.dtype)
        distances[...] = xp.square(centroids).sum(axis=1)[None, :]  # |p|^2 is the same for all centroids
        sites.product("distances", points, centroids.T, alpha=-2, beta=1, out=distances)
        member = (distances.argmin(axis=1)[:, None] == xp.arange(self.clusters)[None, :]).astype(points.dtype)
        sites.product("centroids", member.T, points, beta=1, out=sums)
        members += member.sum(axis=0)
