#!/usr/bin/env python3
"""Answers as bench_gpu does, with numbers that the test knows. SIDE_DOUBLE holds how it is to behave, as JSON."""

import json
import os
import sys

behaviour = {"kiln": 5.0, "read": 4.5, "bare": 2000.0, "plan": 2010.0, "refuse": [], "refusal": "refused on purpose",
             "end_at": None, "hang_at": None}
behaviour |= json.loads(os.environ.get("SIDE_DOUBLE", "{}"))


def answer(words):
    if words[0] == behaviour["end_at"]:
        os._exit(9)
    if " ".join(words) == behaviour["hang_at"]:
        sys.stdin.read()
    if " ".join(words[:4]) in behaviour["refuse"]:
        return {"error": behaviour["refusal"].format(**os.environ)}
    if words[0] == "device":
        return {"name": "a double", "processor": "sm_90", "driver": 13000, "multiprocessors": 132, "l2_bytes": 62914560}
    if words[0] == "problem":
        return {"copies": 3}
    if words[0] == "case":
        return {"kernel": "kiln_linear", "launches": 100, "bytes": 20_000_000, "read": "somehow"}
    if words[0] == "round":
        middle = behaviour[words[1]]
        return {"us": [middle * (1 + 0.01 * (i - 1)) for i in range(int(words[2]))]}
    if words[0] == "launch":
        count = int(words[1])
        return {"bare_ns": [behaviour["bare"]] * count, "plan_ns": [behaviour["plan"]] * count, "burst": 200}
    if words[0] in ("first-use", "prepare"):
        folder = os.environ["KILN_CACHE_DIR"]
        warm = os.path.isdir(folder) and os.listdir(folder) != []
        os.makedirs(folder, exist_ok=True)
        open(os.path.join(folder, "entry"), "w").close()
        times = {"open_ms": 1.0, "prepared_ms": 5.0 if warm else 900.0, "total_ms": 6.0 if warm else 1000.0}
        return times | {"compiles": 0 if warm else 4, "loads": 4, "cache_hits": 4 if warm else 0, "plans": 2}
    return {"error": "unknown command"}


if len(sys.argv) > 1:
    print(json.dumps(answer(sys.argv[1:])))
else:
    for line in sys.stdin:
        print(json.dumps(answer(line.split())), flush=True)
