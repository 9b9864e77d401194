"""What a user of PyTorch has: quantise, then a block-scaled fp8 product of cuBLAS; and the product in bf16."""

import functools

import torch
import torch.nn.functional as F

from arrays import FP8, GROUP, quantise

# cuBLAS wants the weights' scales padded to four blocks of K.
_SCALE_BLOCKS = 4


def quantise_outer_major(x):
    """As quantise(), with the scales laid out [K / 128][M], which is how cuBLAS reads them."""
    groups = x.float().view(x.shape[0], -1, GROUP)
    amax = groups.abs().amax(-1).clamp_min(1e-10)
    scale = torch.empty_strided(amax.shape, (1, amax.shape[0]), dtype=torch.float32, device=x.device)
    torch.mul(amax, 1.0 / 448.0, out=scale)
    q = (groups * (1.0 / scale).unsqueeze(-1)).to(FP8).view(x.shape)
    return q, scale


def _quantise_for_compile(x):
    q, scale = quantise(x)
    return q, scale.t().contiguous()


@functools.cache
def _compiled():
    torch._dynamo.config.recompile_limit = 1000  # each M and K has code of its own
    torch._dynamo.config.accumulated_recompile_limit = 1000
    return torch.compile(_quantise_for_compile, dynamic=False)


def compiled_quantise(x):
    """quantise() through torch.compile, the scales laid out as above."""
    q, scale = _compiled()(x)
    return q, scale.t()


def padded_scales(w_scale):
    """[N / 128, K / 128] -> what scaled_mm takes: [K / 128 up to a multiple of 4, N / 128], K adjacent."""
    extra = -w_scale.shape[-1] % _SCALE_BLOCKS
    return F.pad(w_scale, (0, extra)).contiguous()


def _product_by_recipe(q, scale, w, w_scale):
    return F.scaled_mm(
        q,
        w.t(),
        scale,
        F.ScalingType.BlockWise1x128,
        w_scale.t(),
        F.ScalingType.BlockWise128x128,
        output_dtype=torch.bfloat16,
    )


def _product_by_shape(q, scale, w, w_scale):
    blocks = w.shape[1] // GROUP
    return torch._scaled_mm(q, w.t(), scale, w_scale[:, :blocks].t(), out_dtype=torch.bfloat16)


class ScaledProduct:
    """cuBLAS's product for M rows: whichever entry point and padding of M it takes, found by trying; unpadded first."""

    def __init__(self, arrays, m):
        self.w_scale = padded_scales(arrays.w_scale)
        refusals = []
        for rows in dict.fromkeys((m, -(-m // 4) * 4, -(-m // 16) * 16)):
            for product in (_product_by_recipe, _product_by_shape):
                x = torch.zeros(rows, arrays.k, dtype=torch.bfloat16, device="cuda")
                x[:m] = arrays.activations(m)
                try:
                    q, scale = quantise_outer_major(x)
                    out = product(q, scale, arrays.w[0], self.w_scale[0])[:m]
                    expected = arrays.reference(x[:m])
                    error = ((out.double() - expected).norm() / expected.norm()).item()
                    if not error < 1e-2:
                        raise ArithmeticError(f"wrong: relative error {error:.2g}")
                except (RuntimeError, ValueError, NotImplementedError, AttributeError, ArithmeticError) as refusal:
                    torch.cuda.synchronize()
                    refusals.append(f"{rows} rows, {product.__name__}: {str(refusal).splitlines()[0][:160]}")
                    continue
                self.rows, self.product = rows, product
                return
        raise RuntimeError("no form of torch's block-scaled product works: " + "; ".join(refusals))

    def __call__(self, q, scale, arrays, copy):
        return self.product(q, scale, arrays.w[copy], self.w_scale[copy])


def padded(x, rows):
    """x with rows of zeros up to `rows`; as an engine would hold it, so the padding is not timed."""
    return F.pad(x, (0, 0, 0, rows - x.shape[-2])).contiguous()
