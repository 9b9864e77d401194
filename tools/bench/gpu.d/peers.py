"""All that PyTorch and Triton bring to a case: its numbers, its reference, and its contenders, each checked before it is timed.

As a program: the process of the peers, which tools/bench/gpu tells what to do. A line is a JSON list of a method of Peers and its
arguments, the answer one of JSON."""

import json
import os
import sys

try:
    import torch

    import torch_peers
    from arrays import Arrays, preshuffled, relative_error
    from timing import Eager, Graphed
except ImportError as missing:
    print(json.dumps({"error": str(missing)}))
    sys.exit(0)

# ||out - reference|| / ||reference|| at most, against float64 on the quantised activations. Rounding to bf16 alone gives
# 1.7e-3; the product in bf16 does not quantise its activations, so it differs by what that costs.
TOLERANCES = {"kiln": 3e-3, "fp8": 1e-2, "bf16": 6e-2}
_MOST_LAUNCHES = 240
_EAGER_LAUNCHES = 20


def _write(path, tensor):
    tensor.contiguous().view(torch.uint8).cpu().numpy().tofile(path)


class Peers:
    """One problem at a time, and of it one case at a time. `folder` is where the numbers go that kiln's side is to use."""

    def __init__(self, folder, quick):
        self._folder = folder
        self._contenders = {}
        self._tuner = None
        self.left_out = []
        self.versions = {"torch": torch.__version__, "cuda of torch": torch.version.cuda}
        try:
            import triton
            import triton_peers

            self.versions["triton"] = triton.__version__
            self._triton = triton_peers
            self._tuner = triton_peers.Tuner(
                triton_peers.QUICK_CONFIGURATIONS if quick else triton_peers.CONFIGURATIONS
            )
        except ImportError as missing:
            self._triton = None
            self.left_out.append(f"triton: {missing}")

    def names(self):
        return list(self._makers())

    def end(self):
        """Configurations of the Triton kernels that did not work."""
        return {"left_out": self._tuner.refusals if self._tuner is not None else []}

    def problem(self, n, k):
        self._contenders = {}
        self.arrays = None  # its memory first
        self.arrays = Arrays(n, k, seed=n * 31 + k)
        _write(os.path.join(self._folder, "w"), preshuffled(self.arrays.w[0]))
        _write(os.path.join(self._folder, "w_scale"), self.arrays.w_scale[0])
        return {}

    def case(self, m):
        self._contenders = {}
        self.m = m
        self.x = self.arrays.activations(m)
        self.reference = self.arrays.reference(self.x)
        _write(os.path.join(self._folder, "x"), self.x)
        return {}

    def judge(self):
        """What kiln's side left in the folder: its relative error, and how many outputs are not the reference rounded once.
        Throws where it is wrong."""
        with open(os.path.join(self._folder, "out"), "rb") as file:
            out = torch.frombuffer(bytearray(file.read()), dtype=torch.bfloat16).cuda().view_as(self.reference)
        error = self._judged(out, "kiln")
        return {"relative_error": error, "differ": int((out != self.reference.to(torch.bfloat16)).sum()), "of": out.numel()}

    def make(self, name):
        """Builds a peer for the case, launches it as it will be timed, and checks what it computed."""
        make, tolerance = self._makers()[name]
        contender, remark = make()
        error = self._judged(contender.result()[: self.m], tolerance)
        self._contenders[name] = contender
        return {"relative_error": error, "remark": remark}

    def round(self, name, samples):
        return {"us": self._contenders[name].measure(samples)}

    def _judged(self, out, tolerance):
        error = relative_error(out, self.reference)
        if not error <= TOLERANCES[tolerance]:
            raise ArithmeticError(f"wrong: relative error {error:.3g}, at most {TOLERANCES[tolerance]} is right")
        return error

    def _makers(self):
        makers = {
            "torch quantise + scaled_mm, graph": (lambda: self._torch(torch_peers.quantise_outer_major, Graphed), "fp8"),
            "torch.compile quantise + scaled_mm, graph": (lambda: self._torch(torch_peers.compiled_quantise, Graphed), "fp8"),
            "torch quantise + scaled_mm, eager": (lambda: self._torch(torch_peers.quantise_outer_major, Eager), "fp8"),
            "scaled_mm alone, graph": (self._product_alone, "fp8"),
            "bf16 matmul, graph": (lambda: self._bf16(Graphed), "bf16"),
            "bf16 matmul, eager": (lambda: self._bf16(Eager), "bf16"),
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
        return timed(call, self._launches(timed)), remark

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


def _is_broken():
    """After some CUDA errors nothing works any more in a process."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def serve():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is not for who asked
    peers = None
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        try:
            if method == "begin":
                peers = Peers(*arguments)
                answer = {"versions": peers.versions, "names": peers.names(), "left_out": peers.left_out}
            else:
                answer = getattr(peers, method)(*arguments)
        except Exception as failure:  # a peer must not end the run, whatever it throws
            answer = {"error": str(failure) or type(failure).__name__, "fatal": _is_broken()}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    serve()
