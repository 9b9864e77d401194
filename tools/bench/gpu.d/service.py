"""What kiln costs as a service: each number from processes of their own, on a cache folder of its own."""

import os
import shutil
import tempfile

from figures import summary
from sides import ask_once


def _summaries(answers, *names):
    return {name: summary([answer[name] for answer in answers]) for name in names}


def first_use(program, environment, problem, m, repetitions):
    """Cold (nothing in the cache: the compiler runs) and warm (a new process on a cache that has it) first use."""
    folder = tempfile.mkdtemp(prefix="kiln-bench-")
    try:
        cold, warm = [], []
        for number in range(repetitions):
            of_cache = {**environment, "KILN_CACHE_DIR": os.path.join(folder, f"cold-{number}")}
            cold.append(ask_once(program, of_cache, "first-use", *problem, m))
            if cold[-1]["compiles"] == 0:
                raise RuntimeError("a first use on an empty cache compiled nothing: it is not cold")
        for _ in range(repetitions):
            warm.append(ask_once(program, of_cache, "first-use", *problem, m))
            if warm[-1]["compiles"] != 0:
                raise RuntimeError("a first use on a full cache compiled: it is not warm")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "problem": list(problem), "m": m,
        "cold": _summaries(cold, "open_ms", "prepared_ms", "total_ms"),
        "warm": _summaries(warm, "open_ms", "prepared_ms", "total_ms"),
        "code_objects": warm[-1]["loads"],
    }


def prepare_table(program, environment, problems, repetitions):
    """Opening kiln and preparing every problem of the table: compiled once, then from the cache in new processes."""
    numbers = [number for problem in problems for number in problem]
    folder = tempfile.mkdtemp(prefix="kiln-bench-")
    try:
        of_cache = {**environment, "KILN_CACHE_DIR": folder}
        cold = ask_once(program, of_cache, "prepare", *numbers)
        warm = [ask_once(program, of_cache, "prepare", *numbers) for _ in range(repetitions)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if any(answer["compiles"] != 0 for answer in warm):
        raise RuntimeError("preparing from a full cache compiled: it is not warm")
    return {
        "plans": cold["plans"], "code_objects": cold["loads"], "compiled": cold["compiles"],
        "cold_ms": cold["total_ms"], "warm": _summaries(warm, "open_ms", "total_ms"),
    }
