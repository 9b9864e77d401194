"""All that PyTorch and Triton bring to a case: its numbers, its reference, and its contenders, each checked before it is timed."""

import os

import torch

import torch_peers
from arrays import Arrays, preshuffled, relative_error
from timing import Eager, Graphed

# ||out - reference|| / ||reference|| at most, against float64 on the quantised activations. Rounding to bf16 alone gives
# 1.7e-3; the product in bf16 does not quantise its activations, so it differs by what that costs.
TOLERANCES = {"kiln": 3e-3, "fp8": 1e-2, "bf16": 6e-2}
_MOST_LAUNCHES = 240
_EAGER_LAUNCHES = 20


def _write(path, tensor):
    tensor.contiguous().view(torch.uint8).cpu().numpy().tofile(path)


class Peers:
    """One problem at a time, and of it one case at a time. `folder` is where the numbers go that kiln's side is to use."""

    def __init__(self, folder, quick, wanted):
        self._folder, self._quick, self._wanted = folder, quick, wanted
        self._tuner = None
        self.refusals = []
        try:
            import triton_peers

            self._triton = triton_peers
            self._tuner = triton_peers.Tuner(
                triton_peers.QUICK_CONFIGURATIONS if quick else triton_peers.CONFIGURATIONS
            )
        except ImportError as missing:
            self._triton = None
            self.refusals.append(f"triton: {missing}")

    def tuner_refusals(self):
        """Configurations of the Triton kernels that did not work."""
        return self._tuner.refusals if self._tuner is not None else []

    @staticmethod
    def versions():
        versions = {"torch": torch.__version__, "cuda of torch": torch.version.cuda}
        try:
            import triton

            versions["triton"] = triton.__version__
        except ImportError:
            pass
        return versions

    def begin_problem(self, n, k):
        self.arrays = None  # its memory first
        self.arrays = Arrays(n, k, seed=n * 31 + k)
        _write(os.path.join(self._folder, "w"), preshuffled(self.arrays.w[0]))
        _write(os.path.join(self._folder, "w_scale"), self.arrays.w_scale[0])

    def begin_case(self, m):
        self.m = m
        self.x = self.arrays.activations(m)
        self.reference = self.arrays.reference(self.x)
        _write(os.path.join(self._folder, "x"), self.x)

    def judge_kiln(self):
        """What kiln's side left in the folder: its relative error, and how many outputs are not the reference rounded once.
        Throws where it is wrong."""
        path = os.path.join(self._folder, "out")
        out = torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.bfloat16).cuda().view_as(self.reference)
        error = relative_error(out, self.reference)
        if not error <= TOLERANCES["kiln"]:
            raise ArithmeticError(f"wrong: relative error {error:.3g}, at most {TOLERANCES['kiln']} is right")
        differ = int((out != self.reference.to(torch.bfloat16)).sum())
        return {"error": error, "differ": differ, "of": out.numel()}

    def contenders(self):
        """{name: {"contender", "error", ...}} of those that work; the others are lines of `refusals`."""
        made = {}
        for name, (make, tolerance) in self._makers().items():
            if self._wanted and not any(word in name for word in self._wanted):
                continue
            try:
                contender, first, remark = make()
                error = relative_error(first[: self.m], self.reference)
                if not error <= TOLERANCES[tolerance]:
                    raise ArithmeticError(f"wrong: relative error {error:.3g}, at most {TOLERANCES[tolerance]} is right")
                made[name] = {"contender": contender, "error": error, "remark": remark}
            except Exception as failure:  # a peer must not end the run, whatever it throws
                first_line = (str(failure).splitlines() or [type(failure).__name__])[0]
                self.refusals.append(f"{name}, {self.arrays.n}x{self.arrays.k} M={self.m}: {first_line[:300]}")
                torch.cuda.synchronize()
        return made

    def _makers(self):
        makers = {
            "torch quantise + scaled_mm, eager": (lambda: self._torch(torch_peers.quantise_outer_major, Eager), "fp8"),
            "torch quantise + scaled_mm, graph": (lambda: self._torch(torch_peers.quantise_outer_major, Graphed), "fp8"),
            "torch.compile quantise + scaled_mm, graph": (lambda: self._torch(torch_peers.compiled_quantise, Graphed), "fp8"),
            "scaled_mm alone, graph": (self._product_alone, "fp8"),
            "bf16 matmul, eager": (lambda: self._bf16(Eager), "bf16"),
            "bf16 matmul, graph": (lambda: self._bf16(Graphed), "bf16"),
        }
        if self._triton is not None:
            makers["triton quantise + product, graph"] = (lambda: self._tuned(self._triton.two_kernels), "fp8")
            makers["triton fused, graph"] = (lambda: self._tuned(self._triton.one_kernel), "fp8")
        return makers

    def _launches(self, timed):
        copies = self.arrays.copies
        if timed is Eager:
            return max(copies, _EAGER_LAUNCHES // copies * copies)
        return max(copies, _MOST_LAUNCHES // copies * copies)

    def _rotated(self, rows=None):
        """x in as many copies as the weights, padded to `rows`."""
        x = self.x if rows is None else torch_peers.padded(self.x, rows)
        return x.repeat(self.arrays.copies, 1, 1)

    def _timed(self, timed, call, remark=""):
        first = call(0)
        torch.cuda.synchronize()
        return timed(call, self._launches(timed)), first, remark

    def _torch(self, quantise, timed):
        arrays = self.arrays
        product = torch_peers.ScaledProduct(arrays, self.m)
        x = self._rotated(product.rows)

        def call(index):
            copy = index % arrays.copies
            q, scale = quantise(x[copy])
            return product(q, scale, arrays, copy)

        return self._timed(timed, call, f"{product.rows} rows")

    def _product_alone(self):
        arrays = self.arrays
        product = torch_peers.ScaledProduct(arrays, self.m)
        x = self._rotated(product.rows)
        quantised = [torch_peers.quantise_outer_major(one) for one in x]

        def call(index):
            copy = index % arrays.copies
            return product(*quantised[copy], arrays, copy)

        return self._timed(Graphed, call, f"{product.rows} rows")

    def _bf16(self, timed):
        arrays = self.arrays
        x, w = self._rotated(), arrays.w_bf16()

        def call(index):
            copy = index % arrays.copies
            return torch.mm(x[copy], w[copy].t())

        return self._timed(timed, call, "twice the bytes")

    def _tuned(self, make_call):
        x = self._rotated()
        best = self._tuner.best(make_call, self.arrays, x)
        columns, swap, warps, stages = best
        remark = f"{columns} columns, {warps} warps, {stages} stages" + (", weights on the left" if swap else "")
        return self._timed(Graphed, make_call(self.arrays, x, best), remark)
