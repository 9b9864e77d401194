"""The figures of a run as Markdown, and which goals they meet."""

# Of the streaming read's speed, by the largest M that the bound is for.
_FRACTIONS = ((8, 0.85), (32, 0.75))
_QUANTISE_AND_PRODUCT = ("torch quantise + scaled_mm, graph", "torch.compile quantise + scaled_mm, graph")
# Does less than the operator: no quantising.
_INFORMATION = ("scaled_mm alone, graph",)


def fraction(case):
    """kiln's speed over the streaming read's."""
    return case["read"]["median"] / case["kiln"]["median"]


def _where(case):
    return f"{case['n']} x {case['k']}, M = {case['m']}"


def _measured(cases):
    return [case for case in cases if "kiln" in case and "read" in case]


def _goal(text, looked_at, misses):
    return {"goal": text, "looked_at": looked_at, "met": looked_at > 0 and not misses, "misses": misses}


def _fraction_goals(cases):
    least_m = 1
    for largest_m, bound in _FRACTIONS:
        of_bound = [case for case in cases if least_m <= case["m"] <= largest_m]
        misses = [f"{_where(case)}: {fraction(case):.3f}" for case in of_bound if fraction(case) < bound]
        yield _goal(f"{bound} of the streaming read's speed, M = {least_m} to {largest_m}", len(of_bound), misses)
        least_m = largest_m + 1


def _peer_goal(cases):
    looked_at, misses = 0, []
    for case in cases:
        ours = case["kiln"]
        for name, theirs in case["peers"].items():
            if name in _INFORMATION:
                continue
            looked_at += 1
            if ours["median"] - theirs["median"] > ours["spread"] + theirs["spread"]:
                misses.append(f"{_where(case)}: {ours['median']:.2f} us, {name} {theirs['median']:.2f} us")
    return _goal("no slower than any peer beyond the spread", looked_at, misses)


def _twice_goal(cases):
    looked_at, misses = 0, []
    for case in cases:
        theirs = [case["peers"][name]["median"] for name in _QUANTISE_AND_PRODUCT if name in case["peers"]]
        if case["m"] > 8 or not theirs:
            continue
        looked_at += 1
        ratio = min(theirs) / case["kiln"]["median"]
        if ratio < 2:
            misses.append(f"{_where(case)}: {ratio:.2f} times")
    return _goal("twice as fast as torch's quantise + product, M = 1 to 8", looked_at, misses)


def _launch_goal(launch):
    bare, more = launch["bare_ns"]["median"], launch["more_ns"]["median"]
    misses = [] if more <= 50 and more <= 0.02 * bare else [f"{_figure(launch['more_ns'], 0)} ns more than {bare:.0f} ns"]
    return _goal("a launch within 2% and 50 ns of the driver's own call", 1, misses)


def goals(run):
    cases = _measured(run["cases"])
    found = [*_fraction_goals(cases), _peer_goal(cases), _twice_goal(cases)]
    if "launch" in run["service"]:
        found.append(_launch_goal(run["service"]["launch"]))
    return [goal for goal in found if goal["looked_at"] > 0]


def _row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _line(text):
    """A message of several lines as one, cut where it goes on for long; gpu.json has all of it."""
    words = " ".join(text.split())
    return words if len(words) <= 300 else words[:300] + " ..."


def _figure(summary, digits=2):
    return f"{summary['median']:.{digits}f} ± {summary['spread']:.{digits}f}"


def _tables(cases):
    peers = list(dict.fromkeys(name for case in cases for name in case["peers"]))
    for problem in dict.fromkeys((case["n"], case["k"]) for case in cases):
        of_problem = [case for case in cases if (case["n"], case["k"]) == problem]
        yield f"\n### {problem[0]} x {problem[1]}\n"
        yield _row("M", "kiln", "streaming read", "of its speed", "TB/s", *peers)
        yield _row(*["---"] * (5 + len(peers)))
        for case in of_problem:
            if "kiln" not in case or "read" not in case:
                yield _row(case["m"] or "all", _line(case["failure"]), *[""] * 3, *[""] * len(peers))
                continue
            cells = [_figure(case["peers"][name]) if name in case["peers"] else "" for name in peers]
            speed = case["bytes"] / case["kiln"]["median"] / 1e6
            yield _row(case["m"], _figure(case["kiln"]), _figure(case["read"]), f"{fraction(case):.3f}", f"{speed:.2f}", *cells)


def _service_table(service):
    yield "\n## The service\n"
    yield _row("what", "median ± spread", "beside")
    yield _row("---", "---", "---")
    if "launch" in service:
        launch = service["launch"]
        yield _row("a plan's launch, ns", _figure(launch["plan_ns"], 0), f"the driver's own call {_figure(launch['bare_ns'], 0)}")
        yield _row(f"what it is more, ns: pairs of bursts of {launch['burst']}", _figure(launch["more_ns"], 0),
                   "the median, at 95%: {:.0f} to {:.0f}".format(*launch["more_ns"]["interval"]))
    if "first_use" in service:
        first = service["first_use"]
        n, k = first["problem"]
        for name, words in (("cold", "cold first use, ms: empty cache, compiler and all"),
                            ("warm", "warm first use, ms: a new process, from the cache")):
            yield _row(f"{words} ({n} x {k}, {first['code_objects']} code objects)", _figure(first[name]["total_ms"], 1),
                       f"prepared after {_figure(first[name]['prepared_ms'], 1)}, opened after {_figure(first[name]['open_ms'], 1)}")
    if "prepare" in service:
        table = service["prepare"]
        yield _row(f"preparing the table's {table['plans']} problems ({table['code_objects']} code objects) from the cache, ms",
                   _figure(table["warm"]["total_ms"], 1), f"compiling {table['compiled']} of them: {table['cold_ms']:.0f} ms, once")


def markdown(run):
    device = run["device"]
    versions = [f"driver {device['driver']}", *(f"{name} {version}" for name, version in run["versions"].items())]
    lines = [
        f"# linear on {device['name']}\n",
        f"{device['multiprocessors']} multiprocessors, L2 {device['l2_bytes'] / 2**20:.0f} MiB; {', '.join(versions)}; "
        f"{run['mode']} run of {run['seconds']:.0f} s, clocks as they are.\n",
        "Microseconds a launch: median ± distance between the quartiles, of replays in interleaved rounds. Weights, x and "
        "results rotate over copies that hold more than three times the L2. The streaming read takes as many bytes as a "
        "launch reads and writes, in the same rotation, by the fastest of several ways: the limit.",
    ]
    lines += _tables(run["cases"])
    if run["service"]:
        lines += _service_table(run["service"])
    lines.append("\n## Goals\n")
    for goal in run["goals"]:
        lines.append(f"- {'met' if goal['met'] else 'missed'} ({goal['looked_at'] - len(goal['misses'])} of "
                     f"{goal['looked_at']}): {goal['goal']}")
        lines += [f"  - {miss}" for miss in goal["misses"]]
    if run["left_out"]:
        lines.append("\n## Left out\n")
        lines += [f"- {_line(text)}" for text in run["left_out"]]
    return "\n".join(lines) + "\n"
