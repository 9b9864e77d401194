#!/usr/bin/env python3
"""kiln from Python with numpy alone: a projection of a model on the gfx950 simulator, for batches that change from step to step.

usage: PYTHONPATH=PREFIX/lib/kiln/python tools/examples/python/numpy_linear.py

PREFIX is where kiln is installed, or build/release. No GPU is needed. On one, arrays are PyTorch's (torch_linear.py) and all
else is the same."""

import numpy as np

import kiln
from kiln import formats, sim

N, K = 4096, 1024


def quantised_weights(rng):
    """What a checkpoint holds: fp8 with a float32 scale for each block of 128 x 128, and what that is worth."""
    w = rng.standard_normal((N, K), dtype=np.float32)
    scales = (np.abs(w).reshape(N // 128, 128, K // 128, 128).max(axis=(1, 3)) / 448).astype(np.float32)
    codes = to_e4m3(w / blocks(scales))
    return codes, scales, E4M3[codes] * blocks(scales)


def blocks(scales):
    return np.repeat(np.repeat(scales, 128, axis=0), 128, axis=1)


CODES = np.arange(256)
E4M3 = np.where(CODES & 0x78, (1 + (CODES & 7) / 8) * 2.0 ** ((CODES >> 3 & 15) - 7.0), (CODES & 7) / 8 * 2.0**-6)
E4M3 = np.where(CODES & 0x80, -E4M3, E4M3)
FINITE = E4M3[:127]  # 127 is NaN


def to_e4m3(values):
    nearest = np.searchsorted((FINITE[1:] + FINITE[:-1]) / 2, np.abs(values)).astype(np.uint8)
    return nearest | np.where(np.signbit(values), np.uint8(0x80), np.uint8(0))


def plain_linear(x, w):
    """The program's own path: the same in numpy, for what kiln declines, and to compare with."""
    q, scales = formats.quantise_1x128(x)
    return (E4M3[q] * np.repeat(scales, 128, axis=1)) @ w.T


def main():
    rng = np.random.default_rng(7)
    codes, scales, w = quantised_weights(rng)

    # When the model is loaded: the problem, its plan, the weights in the layout that kernels take.
    service = kiln.Service(device="sim")
    plan = service.prepare(0, kiln.Linear(n=N, k=K))
    device_w, device_scales = sim.array(formats.shuffle_weights(codes)), sim.array(scales)
    stream = sim.Stream()
    graphs = {}

    # Step by step, each batch size captured once. Graphs keep addresses, so each has arrays of its own.
    for m in (1, 3, 1, 8, 3, 40):
        x = formats.to_bf16(rng.standard_normal((m, K), dtype=np.float32))
        try:
            if m not in graphs:
                device_x, out = sim.empty((m, K), np.uint16, sim.BFLOAT16), sim.empty((m, N), np.uint16, sim.BFLOAT16)
                with stream.capture() as graph:
                    plan.launch(stream, x=device_x, w=device_w, w_scale=device_scales, out=out)
                graphs[m] = graph, device_x, out
        except kiln.Declined as declined:
            result, how = plain_linear(x, w), f"numpy, since kiln declined: {declined}"
        else:
            graph, device_x, out = graphs[m]
            device_x.write(x)
            graph.replay(stream)
            stream.synchronize()
            result, how = formats.from_bf16(out.read()), plan.kernel_name(m)
        expected = plain_linear(x, w)
        error = np.linalg.norm(result - expected) / np.linalg.norm(expected)
        print(f"M = {m:2}: relative error {error:.1e}, by {how}")
        assert error < 3e-3  # results are rounded to bf16

    counted = service.statistics()
    print(f"{counted.compiles} kernels compiled, {counted.cache_hits} from the cache")


main()
