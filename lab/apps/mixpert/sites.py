"""The call sites of a program: each multiplies at a level of its own, and can be timed."""

import kintsugi

# Levels of the search, from the most accurate to the cheapest on an H200's matrix units.
LEVELS = ("native", "fp16x3", "tf32", "fp16")


class Sites:
    """Products of one run of a program, by the name of their site.

    levels: site -> "native" (the vendor's product of the operands' type), "auto" (Kintsugi's default) or a scheme;
    sites that it does not name take `default`.
    """

    def __init__(self, device, levels=None, default="native", profile=False):
        self.device, self.xp = device, device.xp
        self.levels, self.default, self.profile = dict(levels or {}), default, profile
        self.seconds = {}
        self.calls = {}

    def product(self, site, a, b, alpha=1, beta=0, out=None):
        """alpha a b + beta out; a new array where out is None. Operands of FP64 are always multiplied natively.

        Operands of three dimensions are batches of matrices.
        """
        level = self.levels.get(site, self.default) if a.dtype == "float32" else "native"
        if out is None:
            out = self.xp.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
        self.calls[site] = self.calls.get(site, 0) + 1
        if not self.profile:
            self._multiply(level, a, b, alpha, beta, out)
            return out
        seconds, _ = self.device.timed(lambda: self._multiply(level, a, b, alpha, beta, out))
        self.seconds[site] = self.seconds.get(site, 0) + seconds
        return out

    def _multiply(self, level, a, b, alpha, beta, out):
        if level == "native":
            self.device.native(a, b, alpha, beta, out)
        elif level == "auto":
            kintsugi.matmul(a, b, alpha=alpha, beta=beta, out=out)
        else:
            kintsugi.matmul(a, b, alpha=alpha, beta=beta, out=out, scheme=level)


class Program:
    """A program whose result is compared with that of FP64 products."""

    def error(self, result, reference):
        """|result - reference|_F / |reference|_F (MixPert's Eq. 10), summed in FP64 in slices of rows."""
        difference = total = 0.0
        for i in range(0, reference.shape[0], 2048):
            exact = reference[i:i + 2048].astype("float64")
            difference += float(self.xp.square(result[i:i + 2048] - exact).sum())
            total += float(self.xp.square(exact).sum())
        return (difference / total)**0.5
