#!/usr/bin/env python3
"""kiln beside PyTorch in one process: torch's tensors, streams and graphs, kiln's launches; the operator `linear`.

usage: PYTHONPATH=PREFIX/lib/kiln/python tools/examples/python/torch_linear.py

PREFIX is where kiln is installed, or build/portable/stage. Skips, and says why, without torch or a GPU. Kernels are compiled on
the first run, by the NVRTC or the hipRTC of the machine."""

import sys
import time

import kiln

N, K, MAX_M = 4096, 1024, 32


class Linear:
    """A projection of a model with fp8 weights, as an engine would have it: kiln's kernel, and torch where kiln declines."""

    def __init__(self, service, w, w_scale):
        """w is float8_e4m3fn [n, k], w_scale float32 [n/128, k/128], on the current device."""
        import torch
        from kiln import formats

        n, k = w.shape
        self.plan = service.prepare(w.device.index, kiln.Linear(n=n, k=k))
        # The layout that the kernel takes, prepared on the host when the model is loaded.
        shuffled = formats.shuffle_weights(w.view(torch.uint8).cpu().numpy())
        self.w, self.w_scale = torch.from_numpy(shuffled).to(w.device), w_scale
        self.dense = (w.double().view(n // 128, 128, k // 128, 128) * w_scale.double()[:, None, :, None]).view(n, k)
        self.num_declined = 0

    def __call__(self, x):
        import torch

        out = torch.empty(x.shape[0], self.dense.shape[0], device=x.device, dtype=torch.bfloat16)
        try:
            self.plan.launch(torch.cuda.current_stream(), x=x, w=self.w, w_scale=self.w_scale, out=out)
        except kiln.Declined:
            self.num_declined += 1
            return self.by_torch(x)
        return out

    def by_torch(self, x):
        """The same in torch's own operations: x in groups of 128 as e4m3fn times its scale, the product in float64."""
        import torch

        groups = x.float().view(x.shape[0], -1, 128)
        scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-10) * torch.tensor(1 / 448, device=x.device)
        quantised = (groups * (1 / scale)).to(torch.float8_e4m3fn).double() * scale.double()
        return (quantised.view(x.shape[0], -1) @ self.dense.T).to(torch.bfloat16)


def check(torch, linear, x):
    """Every M on a stream of torch's, then the largest in a graph with torch's own work around it."""
    expected = linear.by_torch(x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    worst = 0.0
    with torch.cuda.stream(stream):
        for m in range(1, MAX_M + 1):
            out = linear(x[:m])
            torch.testing.assert_close(out, expected[:m], rtol=2**-7, atol=1e-6 * expected[:m].abs().max().item())
            worst = max(worst, (out != expected[:m]).double().mean().item())
            assert worst < 2e-2, f"M = {m}: {worst} of the outputs differ"
        eager = linear(x)
    torch.cuda.current_stream().wait_stream(stream)
    print(f"every M up to {MAX_M}: within a unit of bf16, at most {worst:.1e} of the outputs differ")

    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        doubled = x * 2
        out = linear(x)
        halved = out / 2
    for _ in range(3):
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out, eager) and torch.equal(halved, eager / 2) and torch.equal(doubled, x * 2)
    assert linear.num_declined == 0
    print("in a graph of torch's: three replays give the bits of the launch")

    more = torch.cat([x, x[:1]])
    assert torch.equal(linear(more), linear.by_torch(more)) and linear.num_declined == 1
    print(f"M = {MAX_M + 1}: declined, so torch computed it")


def refuse(torch, linear, x):
    """Tensors that can not be meant, and what is said of them."""
    wide = torch.empty(MAX_M, 2 * N, device=x.device, dtype=torch.bfloat16)
    right = {"x": x, "w": linear.w, "w_scale": linear.w_scale, "out": wide[:, :N].contiguous()}
    for changed in ({"x": x.float()}, {"x": x.cpu()}, {"x": x.T.contiguous().T}, {"out": right["out"][1:]}, {"out": wide[:, :N]}):
        try:
            linear.plan.launch(None, **(right | changed))
        except kiln.ArrayError as why:
            print(f"refused: {why}")
        else:
            sys.exit(f"expected {list(changed)} to be refused")


def time_host(torch, linear, x):
    """What a launch costs the thread that makes it."""
    out = torch.empty(MAX_M, N, device=x.device, dtype=torch.bfloat16)
    arrays = {"x": x, "w": linear.w, "w_scale": linear.w_scale, "out": out}
    stream = torch.cuda.current_stream()
    m, arguments = linear.plan.arguments(**arrays)
    address = stream.cuda_stream
    launches = 200
    for name, launch in (
        ("tensors", lambda: linear.plan.launch(stream, **arrays)),
        ("addresses", lambda: linear.plan.launch_pointers(address, m, arguments)),
    ):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(launches):
            launch()
        print(f"a launch on {name}: {(time.perf_counter() - begin) / launches * 1e6:.1f} us of the host")
        torch.cuda.synchronize()


def main():
    try:
        import torch
    except ImportError as why:
        print(f"skipped: {why}")
        return
    if not torch.cuda.is_available():
        print("skipped: torch sees no GPU")
        return
    seed = 8061
    torch.manual_seed(seed)
    print(f"torch {torch.__version__}, kiln {kiln.library_version()}, seed {seed}")
    x = torch.randn(MAX_M, K, device="cuda", dtype=torch.bfloat16)
    w = (torch.randn(N, K, device="cuda") * 64).to(torch.float8_e4m3fn)
    w_scale = torch.rand(N // 128, K // 128, device="cuda") * 2**-16 + 2**-18

    service = kiln.Service(device="hip" if torch.version.hip else "cuda")
    print(service.device_info(0))
    linear = Linear(service, w, w_scale)
    check(torch, linear, x)
    refuse(torch, linear, x)
    time_host(torch, linear, x)
    torch.cuda.synchronize()
    linear.plan.close()
    service.close()
    assert torch.equal(x + x, x * 2)  # the context is still torch's
    print("passed")


main()
