"""Correlation of genotypes, nearest neighbours and k-means."""

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


class Neighbours(Program):
    """The eight nearest of `points` to each of `queries`, by squared distances |q|^2 - 2 q.p + |p|^2."""

    name, limit, sites = "nearest-neighbours", 1e-5, ("distances",)
    small, paper = (40, 96, 64), (8192, 32768, 4096)
    neighbours = 8

    def __init__(self, device, queries, points, dimensions, seed):
        self.device, self.xp = device, device.xp
        self.queries = uniform(self.xp, (queries, dimensions), 2 * seed)
        self.points = uniform(self.xp, (points, dimensions), 2 * seed + 1)

    def run(self, sites, dtype="float32"):
        xp = self.xp
        queries, points = self.queries.astype(dtype, copy=False), self.points.astype(dtype, copy=False)
        distances = xp.square(queries).sum(axis=1)[:, None] + xp.square(points).sum(axis=1)[None, :]
        sites.product("distances", queries, points.T, alpha=-2, beta=1, out=distances)
        nearest = xp.empty((queries.shape[0], self.neighbours), dtype)
        rows = xp.arange(queries.shape[0])
        for place in range(self.neighbours):
            column = distances.argmin(axis=1)
            nearest[:, place] = distances[rows, column]
            distances[rows, column] = xp.inf
        return nearest


class KMeans(Program):
    """Lloyd's iterations; distances and new centroids, a sum by the matrix of memberships, are products.

    Points come in blocks: distances take the memory of one block, and a centroid's sum of FP32 numbers is one of a few partial
    sums, which loses less than one long sum.
    """

    name, limit, sites = "k-means", 1e-4, ("distances", "centroids")
    small, paper = (240, 32, 6), (131072, 2048, 2048)
    iterations, blocks = 4, 4

    def __init__(self, device, points, dimensions, clusters, seed):
        self.device, self.xp, self.clusters = device, device.xp, clusters
        centres = uniform(self.xp, (clusters, dimensions), 2 * seed)
        self.points = uniform(self.xp, (points, dimensions), 2 * seed + 1, 0, 0.1)
        for first in range(0, points, clusters):
            part = self.points[first:first + clusters]
            part += centres[:part.shape[0]]

    def run(self, sites, dtype="float32"):
        xp, points = self.xp, self.points.astype(dtype, copy=False)
        rows = -(-points.shape[0] // self.blocks)
        centroids = points[:self.clusters].copy()
        for _ in range(self.iterations):
            sums, members = xp.zeros(centroids.shape, dtype), xp.zeros(self.clusters, dtype)
            for first in range(0, points.shape[0], rows):
                self._add_block(sites, points[first:first + rows], centroids, sums, members)
            centroids = sums / xp.maximum(members, 1)[:, None]
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
