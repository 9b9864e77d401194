#!/usr/bin/env python3
"""Answers as peers.py does. "faults at launch" breaks its process when it is timed, "faults when made" when it is made, "wrong"
computes something else; PEERS_DOUBLE, a file, gets a line for each start and each request."""

import json
import os
import sys


def note(words):
    with open(os.environ["PEERS_DOUBLE"], "a", encoding="utf-8") as file:
        file.write(words + "\n")


note("started")
NAMES = ["faults at launch", "good", "faults when made", "wrong", "dies"]
for line in sys.stdin:
    method, *arguments = json.loads(line)
    note(f"{method} {' '.join(str(argument) for argument in arguments)}")
    name = arguments[0] if arguments else None
    answer = {}
    if method == "begin":
        answer = {"versions": {"torch": "0"}, "names": NAMES, "left_out": ["triton: not here"]}
    elif method == "make" and name == "wrong":
        answer = {"error": "wrong: relative error 1", "fatal": False}
    elif (method, name) in (("make", "faults when made"), ("round", "faults at launch")):
        answer = {"error": "illegal memory access", "fatal": True}
    elif method == "make" and name == "dies":
        os._exit(7)
    elif method == "make":
        answer = {"relative_error": 0.001, "remark": ""}
    elif method == "round":
        answer = {"us": [10.0] * arguments[1]}
    elif method == "end":
        answer = {"left_out": []}
    print(json.dumps(answer), flush=True)
