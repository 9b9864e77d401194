"""How every contender that lives in PyTorch is timed: CUDA events around replays of a graph of many launches."""

import torch


def graph_of(call, launches):
    """A CUDA graph of call(0) .. call(launches - 1), and what the calls returned.

    The results are held until the capture ends, so every launch writes an array of its own.
    """
    for index in range(3):  # what a first call allocates, loads or compiles must not happen in the capture
        call(index)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = [call(index) for index in range(launches)]
    return graph, results


class _Timed:
    """A contender: measure(samples) gives microseconds a launch, a number for each sample, after one that is not counted."""

    def __init__(self, launches):
        self.launches = launches
        self._begin = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)

    def measure(self, samples):
        times = []
        self._enqueue()
        for _ in range(samples):
            self._begin.record()
            self._enqueue()
            self._end.record()
            self._end.synchronize()
            times.append(self._begin.elapsed_time(self._end) * 1000.0 / self.launches)
        return times


class Graphed(_Timed):
    """Replays of one graph. It keeps `call`, and with it the arrays whose addresses the graph holds."""

    def __init__(self, call, launches):
        super().__init__(launches)
        self._call = call
        self._graph, self._results = graph_of(call, launches)

    def result(self):
        """What the last launch of a replay computes; every copy holds the same numbers."""
        self._results[-1].view(torch.uint8).fill_(0xFF)  # NaN
        self._graph.replay()
        torch.cuda.synchronize()
        return self._results[-1]

    def _enqueue(self):
        self._graph.replay()


class Eager(_Timed):
    """Calls one after the other, as Python issues them."""

    def __init__(self, call, launches):
        super().__init__(launches)
        self._call = call

    def result(self):
        return self._call(0)

    def _enqueue(self):
        for index in range(self.launches):
            self._call(index)
