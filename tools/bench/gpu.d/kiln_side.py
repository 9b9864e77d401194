"""Talks to bench_gpu, the process that launches kiln and reads memory as fast as it can be read."""

import json
import os
import subprocess


class Refused(RuntimeError):
    """What the other side could not do, in its words."""


class KilnSide:
    """One bench_gpu; start it again after anything that may have broken its GPU context."""

    def __init__(self, program, environment):
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env={**os.environ, **environment},
        )

    def ask(self, *words):
        try:
            self._process.stdin.write(" ".join(str(word) for word in words) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended; the answer that is missing below says so
        line = self._process.stdout.readline()
        if not line:
            raise Refused(f"bench_gpu ended with status {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


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
        raise Refused(f"bench_gpu {words[0]} ended with status {process.returncode}: {process.stderr.strip()}") from None
    if "error" in answer:
        raise Refused(answer["error"])
    return answer
