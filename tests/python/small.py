"""Problems of a few tiles, which compile and run in a moment, and what must come out of them, in float64."""

import json
import os
import tempfile
import unittest

import numpy as np

import kiln
from kiln import formats

SEED = 4217

LINEAR = kiln.Linear(n=64, k=256)
ROUTER = kiln.Router(hidden=256, experts=32, top_k=3)
SORT = kiln.MoeSort(experts=8, slots=2, block_m=16, hidden=2048, quant=kiln.MoeSortQuant.MXFP8)
EXPERTS = kiln.FusedMoe(hidden=128, intermediate=64, experts=4, slots=2)


def row(operator, problem, buckets, target="gfx950"):
    return {"operator": operator, "problem": problem, "target": target, "provenance": {"kind": "untuned"}, "buckets": buckets}


def bucket(max_m, template, **constants):
    return {"max_m": max_m, "template": template, "constants": constants}


def linear_row(n=LINEAR.n, waves=1, edges=(4, 16)):
    """Two buckets, each with a kernel of its own. One wave or two serve K = 256, three do not divide it."""
    buckets = [bucket(edge, "linear/small_m", tiles_n=1, waves=waves, lane_rows=edge, blocks_ahead=1) for edge in edges]
    return row("linear", {"n": n, "k": LINEAR.k}, buckets)


ROWS = [
    linear_row(),
    row("router", {"hidden": 256, "experts": 32, "top_k": 3}, [bucket(4, "router/one_launch", rows=1, waves=4)]),
    row(
        "fused_moe", {"hidden": 128, "intermediate": 64, "experts": 4, "slots": 2, "weights": "mxfp4"},
        [bucket(4, "fused_moe/small_m", columns=16, gate_up_waves=1, row_tiles=1, down_waves=4)],
    ),
]  # fmt: skip


class SmallCase(unittest.TestCase):
    """A test with a folder of its own: an empty cache, and a table that it may edit."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="kiln-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.table = os.path.join(self.folder, "table.json")
        self.write_table(ROWS)

    def write_table(self, rows):
        with open(self.table, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, "rows": rows}, file)

    def open(self, **config):
        config = {"cache_dir": os.path.join(self.folder, "cache"), "shapes_path": self.table, "device": "sim"} | config
        service = kiln.Service(**config)
        self.addCleanup(service.close)
        return service


def random():
    print(f"seed {SEED}")
    return np.random.default_rng(SEED)


def normal(generator, *shape):
    """bf16."""
    return formats.to_bf16(generator.standard_normal(shape, dtype=np.float32))


def e4m3(codes):
    """e4m3fn to float64."""
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    magnitude = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent.astype(float) - 7))
    return np.where(codes >> 7, -magnitude, magnitude)


def e2m1(pairs):
    """Two elements of a byte each, the even one in the low half, to float64."""
    codes = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(*pairs.shape[:-1], -1)
    magnitude = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])[codes & 7]
    return np.where(codes >> 3, -magnitude, magnitude)


def times_scales(values, scales, rows, columns):
    """Each scale is of so many rows and columns."""
    return values * np.repeat(np.repeat(np.asarray(scales, dtype=np.float64), rows, axis=-2), columns, axis=-1)


class LinearCase:
    """M rows for LINEAR, or for another n, and what comes out: within one unit of bf16, and equal nearly everywhere."""

    def __init__(self, generator, m, n=LINEAR.n):
        k = LINEAR.k
        self.m, self.x = m, normal(generator, m, k)
        codes, _ = formats.quantise_1x128(normal(generator, n, k))
        self.w_scale = generator.uniform(1e-3, 2e-3, (-(-n // 128), k // 128)).astype(np.float32)
        self.w = formats.shuffle_weights(codes)
        scales = np.repeat(np.repeat(self.w_scale, 128, axis=0)[:n], 128, axis=1)
        x, x_scale = formats.quantise_1x128(self.x)
        self.expected = times_scales(e4m3(x), x_scale, 1, 128) @ (e4m3(codes) * scales.astype(np.float64)).T

    def check(self, test, out):
        np.testing.assert_allclose(formats.from_bf16(out), self.expected, rtol=2**-7, atol=1e-6 * np.abs(self.expected).max())
        differing = np.mean(out != formats.to_bf16(self.expected))
        test.assertLess(differing, 2e-2)
