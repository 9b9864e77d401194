"""The two processes that work for a run: bench_gpu (kiln, and the limit) and peers.py (PyTorch and Triton). A line in, a line
of JSON out; {"error": ...} is what they could not do."""

import json
import os
import subprocess
import sys


class Refused(RuntimeError):
    """What the other side could not do, in its words. `fatal`: nor can it do anything else any more."""

    def __init__(self, answer):
        super().__init__(answer["error"])
        self.fatal = answer.get("fatal", False)


class _Side:
    def __init__(self, command, environment):
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env={**os.environ, **environment},
        )

    def _tell(self, line):
        answer = ""
        if not self._process.stdout.closed:
            try:
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                pass  # it ended; no answer comes
            answer = self._process.stdout.readline()
        if not answer:
            name = os.path.basename(self._process.args[-1])
            raise Refused({"error": f"{name} ended with status {self._process.wait()}", "fatal": True})
        answer = json.loads(answer)
        if "error" in answer:
            raise Refused(answer)
        return answer

    def close(self):
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class KilnSide(_Side):
    """One bench_gpu; start it again after anything that may have broken its GPU context."""

    def __init__(self, program, environment):
        super().__init__([program], environment)

    def ask(self, *words):
        return self._tell(" ".join(str(word) for word in words))


class KilnContender:
    """`what` is kiln or read: one of the two graphs of the case that the other side was told last."""

    def __init__(self, side, what):
        self._side, self._what = side, what

    def measure(self, samples):
        return self._side.ask("round", self._what, samples)["us"]


def ask_once(program, environment, *words):
    """A bench_gpu of its own for one question."""
    process = subprocess.run(
        [program, *(str(word) for word in words)], capture_output=True, text=True, env={**os.environ, **environment}
    )
    try:
        answer = json.loads(process.stdout)
    except json.JSONDecodeError:
        said = f"bench_gpu {words[0]} ended with status {process.returncode}: {process.stderr.strip()}"
        raise Refused({"error": said}) from None
    if "error" in answer:
        raise Refused(answer)
    return answer


class _PeersProcess(_Side):
    def __init__(self, program, folder, quick):
        super().__init__([sys.executable, "-B", program], {})
        self.told = self.ask("begin", folder, quick)

    def ask(self, *words):
        return self._tell(json.dumps(words))


class PeerSide:
    """The peers of a run. One that breaks its process (a CUDA error is for ever) is left out from then on; a new process takes
    up the problem and the case where it was."""

    _MOST_STARTS = 4

    def __init__(self, program, folder, quick, wanted):
        self._start = lambda: _PeersProcess(program, folder, quick)
        self._num_starts = 1
        self._process = self._start()
        self.versions = self._process.told["versions"]
        self._names = [name for name in self._process.told["names"] if not wanted or any(word in name for word in wanted)]
        self._problem = self._case = None
        self._made = {}
        self.left_out = list(self._process.told["left_out"])

    def begin_problem(self, n, k):
        self._problem, self._case, self._made = (n, k), None, {}
        self._process.ask("problem", n, k)

    def begin_case(self, m):
        self._case, self._made = m, {}
        self._process.ask("case", m)

    def judge_kiln(self):
        """How near kiln's result is. Throws Refused where it is wrong."""
        try:
            return self._process.ask("judge")
        except Refused as refused:
            if refused.fatal:
                raise PeersGone(f"the process of the peers broke where it compared kiln's result: {refused}") from None
            raise

    def make(self):
        """{name: what it is} of the peers that work for the case."""
        for name in list(self._names):
            try:
                self._made[name] = self._process.ask("make", name)
            except Refused as refused:
                n, k = self._problem
                self.left_out.append(f"{name}, {n} x {k}, M = {self._case}: {refused}")
                self._after(name, refused)
        return dict(self._made)

    def contender(self, name):
        return _PeerContender(self, name)

    def measure(self, name, samples):
        try:
            return self._process.ask("round", name, samples)["us"]
        except Refused as refused:
            self._after(name, refused)
            raise

    def close(self):
        for words in self._process.ask("end")["left_out"]:
            self.left_out.append(words)
        self._process.close()

    def _after(self, name, refused):
        self._made.pop(name, None)
        if not refused.fatal:
            return
        self._names.remove(name)
        self._process.close()
        if self._num_starts == self._MOST_STARTS:
            raise PeersGone(f"{name} was the last of {self._MOST_STARTS} to break the process of the peers: {refused}")
        self._num_starts += 1
        self._process = self._start()
        self._process.ask("problem", *self._problem)
        self._process.ask("case", self._case)
        for other in self._made:
            self._process.ask("make", other)


class PeersGone(RuntimeError):
    """No peer can be asked any more."""


class _PeerContender:
    def __init__(self, side, name):
        self._side, self._name = side, name

    def measure(self, samples):
        return self._side.measure(self._name, samples)
