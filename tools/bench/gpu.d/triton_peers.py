"""The operator written in Triton in the straightforward way: a quantiser and a product, or both in one kernel."""

import torch
import triton
import triton.language as tl

from arrays import FP8, GROUP
from timing import Graphed


@triton.jit
def _quantise_kernel(x, q, scale, K, GROUPS: tl.constexpr):
    row = tl.program_id(0)
    group = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    at = row * K + group[:, None] * 128 + tl.arange(0, 128)[None, :]
    value = tl.load(x + at).to(tl.float32)
    s = tl.maximum(tl.max(tl.abs(value), axis=1), 1e-10) * (1.0 / 448.0)
    tl.store(q + at, (value * (1.0 / s)[:, None]).to(q.dtype.element_ty))
    tl.store(scale + row * (K // 128) + group, s)


@triton.jit(do_not_specialize=["M"])
def _product_kernel(
    q, scale, w, w_scale, out, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SWAP: tl.constexpr
):
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.arange(0, BLOCK_M)
    k = tl.arange(0, 128)
    blocks = K // 128
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for block in range(0, blocks):
        a = tl.load(q + m[:, None] * K + block * 128 + k[None, :], mask=m[:, None] < M, other=0.0)
        b = tl.load(w + n[:, None] * K + block * 128 + k[None, :])
        xs = tl.load(scale + m * blocks + block, mask=m < M, other=0.0)
        ws = tl.load(w_scale + (n // 128) * blocks + block)
        if SWAP:
            dot = tl.trans(tl.dot(b, tl.trans(a)))
        else:
            dot = tl.dot(a, tl.trans(b))
        acc += dot * (xs[:, None] * ws[None, :])
    tl.store(out + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=m[:, None] < M)


@triton.jit(do_not_specialize=["M"])
def _fused_kernel(x, w, w_scale, out, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SWAP: tl.constexpr):
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.arange(0, BLOCK_M)
    k = tl.arange(0, 128)
    blocks = K // 128
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for block in range(0, blocks):
        value = tl.load(x + m[:, None] * K + block * 128 + k[None, :], mask=m[:, None] < M, other=0.0).to(tl.float32)
        b = tl.load(w + n[:, None] * K + block * 128 + k[None, :])
        xs = tl.maximum(tl.max(tl.abs(value), axis=1), 1e-10) * (1.0 / 448.0)
        a = (value * (1.0 / xs)[:, None]).to(w.dtype.element_ty)
        ws = tl.load(w_scale + (n // 128) * blocks + block)
        if SWAP:
            dot = tl.trans(tl.dot(b, tl.trans(a)))
        else:
            dot = tl.dot(a, tl.trans(b))
        acc += dot * (xs[:, None] * ws[None, :])
    tl.store(out + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=m[:, None] < M)


# (columns of N, weights as the left operand, warps, stages). The left operand may be 64 rows of a warp group's instruction.
CONFIGURATIONS = (
    (32, False, 2, 8),
    (64, True, 4, 6),
    (64, True, 4, 10),
    (64, False, 4, 6),
    (32, False, 4, 6),
    (16, False, 1, 8),
    (128, True, 4, 4),
    (128, True, 8, 6),
)
QUICK_CONFIGURATIONS = CONFIGURATIONS[:4]


def quantise(x):
    m, k = x.shape
    q = torch.empty(m, k, dtype=FP8, device="cuda")
    scale = torch.empty(m, k // GROUP, dtype=torch.float32, device="cuda")
    _quantise_kernel[(m, k // GROUP // 4)](x, q, scale, k, GROUPS=4, num_warps=4)
    return q, scale


def _launch(kernel, configuration, m, n, k, *arrays):
    columns, swap, warps, stages = configuration
    out = torch.empty(m, n, dtype=torch.bfloat16, device="cuda")
    kernel[(n // columns,)](
        *arrays, out, m, n, k,
        BLOCK_M=16 if m <= 16 else 32, BLOCK_N=columns, SWAP=swap, num_warps=warps, num_stages=stages,
    )
    return out


def two_kernels(arrays, x, configuration):
    """call(i): the quantiser, then the product, on copy i."""

    def call(index):
        copy = index % arrays.copies
        q, scale = quantise(x[copy])
        return _launch(_product_kernel, configuration, x.shape[1], arrays.n, arrays.k, q, scale,
                       arrays.w[copy], arrays.w_scale[copy])

    return call


def one_kernel(arrays, x, configuration):
    """call(i): everything in one kernel, on copy i."""

    def call(index):
        copy = index % arrays.copies
        return _launch(_fused_kernel, configuration, x.shape[1], arrays.n, arrays.k, x[copy],
                       arrays.w[copy], arrays.w_scale[copy])

    return call


class Tuner:
    """Picks the fastest configuration for a problem and 16 or 32 rows, by replays over rotated copies."""

    def __init__(self, configurations):
        self._configurations = configurations
        self._best = {}
        self.refusals = []

    def best(self, make_call, arrays, x):
        key = (make_call.__name__, arrays.n, arrays.k, x.shape[1] > 16)
        if key not in self._best:
            times = {}
            for configuration in self._configurations:
                if arrays.n % configuration[0] != 0:
                    continue
                try:
                    graphed = Graphed(make_call(arrays, x, configuration), max(arrays.copies, 30))
                    times[configuration] = min(graphed.measure(3))
                except Exception as refusal:  # Triton's own errors share no base: shared memory, a layout it lacks
                    torch.cuda.synchronize()
                    first = (str(refusal).splitlines() or [type(refusal).__name__])[0]
                    self.refusals.append(f"{make_call.__name__} {configuration}: {first[:160]}")
            if not times:
                raise RuntimeError("no configuration of the Triton kernel works: " + "; ".join(self.refusals[-3:]))
            self._best[key] = min(times, key=times.get)
        return self._best[key]
