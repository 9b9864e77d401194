"""What is multiplied, for one problem: the same numbers for every contender, in enough copies to miss the L2 cache."""

import math

import torch

FP8 = torch.float8_e4m3fn
GROUP = 128


def quantise(x):
    """The 1x128 quantiser of the operator in plain PyTorch: e4m3 values, and a float32 scale for each group."""
    groups = x.float().view(x.shape[0], -1, GROUP)
    scale = groups.abs().amax(-1).clamp_min(1e-10) * (1.0 / 448.0)
    q = (groups * (1.0 / scale).unsqueeze(-1)).to(FP8).view(x.shape)
    return q, scale


def preshuffled(w):
    """Weights [N, K] in the layout (16, 16) that kiln takes."""
    n, k = w.shape
    tiles = w.view(torch.uint8).view(n // 16, 16, k // 16, 16)
    return tiles.permute(0, 2, 1, 3).contiguous().view(n, k)


def num_copies(bytes_of_one, l2_bytes):
    """Copies that together hold more than three times the L2 cache."""
    return max(2, math.floor(3 * l2_bytes / bytes_of_one) + 1)


class Arrays:
    """w[copy], w_scale[copy]: row-major fp8 weights and their 128x128 scales. Every copy holds the same numbers."""

    def __init__(self, n, k, seed):
        self.n, self.k = n, k
        self.generator = torch.Generator(device="cuda").manual_seed(seed)
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        self.copies = num_copies(n * k, l2_bytes)
        one = self._normal(n, k).to(FP8)
        self.w = one.view(torch.uint8).repeat(self.copies, 1, 1).view(FP8)
        scale = torch.rand(-(-n // GROUP), k // GROUP, generator=self.generator, device="cuda") * 0.02 + 0.001
        self.w_scale = scale.repeat(self.copies, 1, 1)
        self._w_bf16 = None

    def _normal(self, *shape):
        return torch.randn(*shape, generator=self.generator, device="cuda")

    def dequantised(self):
        """The weights in float64."""
        scale = self.w_scale[0].double().repeat_interleave(GROUP, 0)[: self.n].repeat_interleave(GROUP, 1)
        return self.w[0].double() * scale

    def w_bf16(self):
        """The dequantised weights rounded to bf16, as many copies: twice the bytes."""
        if self._w_bf16 is None:
            self._w_bf16 = self.dequantised().to(torch.bfloat16).repeat(self.copies, 1, 1)
        return self._w_bf16

    def activations(self, m):
        """bf16 [M, K] whose groups have magnitudes of their own."""
        magnitude = 8 * torch.rand(m, self.k // GROUP, 1, generator=self.generator, device="cuda")
        return (self._normal(m, self.k // GROUP, GROUP) * magnitude).view(m, self.k).to(torch.bfloat16)

    def reference(self, x):
        """The operator in float64: quantised activations, dequantised weights, no rounding of the sum."""
        q, scale = quantise(x)
        activations = q.double() * scale.double().repeat_interleave(GROUP, 1)
        return activations @ self.dequantised().t()


def relative_error(out, reference):
    """||out - reference|| / ||reference||; infinite where anything is not finite."""
    difference = out.double() - reference
    error = (difference.norm() / reference.norm()).item()
    return error if math.isfinite(error) else math.inf
