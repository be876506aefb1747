"""A perceptron, and BERT's encoder: whole, its feed-forward layers, its projections to queries, keys and values."""

import json
import pathlib
import struct

import numpy

from mixpert.arrays import uniform
from mixpert.sites import Program


class Perceptron(Program):
    """Y = tanh(tanh(X W1) W2) W3 with square layers; X of as many rows; weights drawn at random, of unit gain."""

    name, limit, sites = "perceptron", 5e-4, ("first_layer", "second_layer", "last_layer")
    small, paper = (80,), (16384,)

    def __init__(self, device, n, seed):
        self.device, self.xp = device, device.xp
        gain = (3 / n)**0.5
        self.x = uniform(self.xp, (n, n), 4 * seed, -1, 1)
        self.weights = [uniform(self.xp, (n, n), 4 * seed + i, -gain, gain) for i in (1, 2, 3)]

    def run(self, sites, dtype="float32"):
        hidden = self.x.astype(dtype, copy=False)
        for site, weights in zip(self.sites, self.weights):
            hidden = sites.product(site, hidden, weights.astype(dtype, copy=False))
            if site != self.sites[-1]:
                self.xp.tanh(hidden, out=hidden)
        return hidden


def read_safetensors(path):
    """Name -> array of a file of FP32 tensors: a length of 8 bytes, that many of JSON, the data."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = numpy.frombuffer(data[8 + size + begin:8 + size + end], "<f4").reshape(entry["shape"])
    return tensors


def synthetic(hidden, intermediate):
    """Normal weights with BERT's standard deviation of 0.02, under BERT's names, in one layer."""
    random = numpy.random.default_rng(1)
    draw = lambda *shape: (0.02 * random.standard_normal(shape)).astype(numpy.float32)  # noqa: E731
    layer = "encoder.layer.0."
    names = {f"{layer}intermediate.dense": (intermediate, hidden), f"{layer}output.dense": (hidden, intermediate),
             **{f"{layer}attention.{part}": (hidden, hidden) for part in ("self.query", "self.key", "self.value", "output.dense")}}
    tensors = {"embeddings.word_embeddings.weight": draw(1000, hidden)}
    for name, shape in names.items():
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = draw(*shape), draw(shape[0])
    return tensors


class _Encoder(Program):
    """Tokens drawn at random, embedded and normalised, and the weights of a BERT encoder's layers."""

    def __init__(self, device, tokens, hidden, seed, weights=None):
        self.device, self.xp = device, device.xp
        tensors = read_safetensors(weights) if weights else synthetic(hidden, 4 * hidden)
        self.tensors = {name: self.xp.asarray(value) for name, value in tensors.items()
                        if "encoder.layer" in name or "LayerNorm" in name}
        self.layers = sorted({name.split(".")[2] for name in self.tensors if "encoder.layer" in name}, key=int)
        table = tensors["embeddings.word_embeddings.weight"]
        ids = numpy.random.default_rng(seed).integers(0, table.shape[0], tokens)
        self.x = self.normalise(self.xp.asarray(table[ids]), "embeddings")

    def normalise(self, x, name):
        """Rows of mean 0 and variance 1, times the weights of the LayerNorm where the file has them."""
        x = x - x.mean(axis=1, keepdims=True)
        x /= self.xp.sqrt(self.xp.square(x).mean(axis=1, keepdims=True) + 1e-12)
        if f"{name}.LayerNorm.weight" in self.tensors:
            x *= self.tensors[f"{name}.LayerNorm.weight"]
            x += self.tensors[f"{name}.LayerNorm.bias"]
        return x

    def dense(self, sites, site, layer, part, x):
        """x W^T + b: the bias stands in C before the product."""
        name = f"encoder.layer.{layer}.{part}"
        weight, bias = (self.tensors[f"{name}.{kind}"].astype(x.dtype, copy=False) for kind in ("weight", "bias"))
        out = self.xp.empty((x.shape[0], weight.shape[0]), x.dtype)
        out[...] = bias
        return sites.product(site, x, weight.T, beta=1, out=out)

    def feed_forward(self, sites, layer, x):
        """norm(x + W2 gelu(W1 x)); overwrites x."""
        inner = self.dense(sites, "intermediate", layer, "intermediate.dense", x)
        cubic = inner * inner
        cubic *= inner
        cubic *= 0.044715
        cubic += inner
        cubic *= (2 / numpy.pi)**0.5
        inner *= 0.5
        self.xp.tanh(cubic, out=cubic)
        cubic += 1
        inner *= cubic
        x += self.dense(sites, "output", layer, "output.dense", inner)
        return self.normalise(x, f"encoder.layer.{layer}.output")


class Bert(_Encoder):
    """A BERT encoder of whole sequences: attention, whose products of heads are batches, and feed-forward layers."""

    name, limit = "bert", 1e-4
    sites = ("query", "key", "value", "scores", "context", "attention_output", "intermediate", "output")
    small, paper = (2, 24, 32), (32, 512, 1024)

    def __init__(self, device, sequences, length, hidden, seed, weights=None):
        super().__init__(device, sequences * length, hidden, seed, weights)
        width = self.x.shape[1]
        self.sequences, self.length, self.head = sequences, length, 64 if width % 64 == 0 else width // 2

    def heads(self, x):
        """Rows of tokens as a batch of (sequence, head) with rows of tokens."""
        parts = x.reshape(self.sequences, self.length, -1, self.head).transpose(0, 2, 1, 3)
        return self.xp.ascontiguousarray(parts).reshape(-1, self.length, self.head)

    def attention(self, sites, layer, x):
        """norm(x + W_o softmax(Q K^T / sqrt(d)) V)."""
        xp = self.xp
        query, key, value = (self.heads(self.dense(sites, part, layer, f"attention.self.{part}", x)) for part in self.sites[:3])
        scores = sites.product("scores", query, key.transpose(0, 2, 1), alpha=self.head**-0.5)
        scores -= scores.max(axis=2, keepdims=True)
        xp.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        context = sites.product("context", scores, value).reshape(self.sequences, -1, self.length, self.head)
        rows = xp.ascontiguousarray(context.transpose(0, 2, 1, 3)).reshape(x.shape)
        x = x + self.dense(sites, "attention_output", layer, "attention.output.dense", rows)
        return self.normalise(x, f"encoder.layer.{layer}.attention.output")

    def run(self, sites, dtype="float32"):
        x = self.x.astype(dtype)
        for layer in self.layers:
            x = self.feed_forward(sites, layer, self.attention(sites, layer, x))
        return x


class FeedForward(_Encoder):
    """x <- norm(x + W2 gelu(W1 x)) in every layer of a BERT encoder; attention is left out."""

    name, limit, sites = "bert-feed-forward", 1e-4, ("intermediate", "output")
    small, paper = (48, 32), (32768, 1024)

    def run(self, sites, dtype="float32"):
        x = self.x.astype(dtype)
        for layer in self.layers:
            x = self.feed_forward(sites, layer, x)
        return x


class Projections(_Encoder):
    """Queries, keys and values of the same tokens, in every layer, beside each other."""

    name, limit, sites = "query-key-value", 1e-4, ("query", "key", "value")
    small, paper = (48, 32), (32768, 4096)

    def run(self, sites, dtype="float32"):
        x = self.x.astype(dtype, copy=False)
        return self.xp.concatenate([self.dense(sites, site, layer, f"attention.self.{site}", x)
                                    for layer in self.layers for site in self.sites], axis=1)
