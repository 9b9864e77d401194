"""Samples to the figures that are printed."""

import statistics


def summary(samples):
    """Median, and the distance between the quartiles as the spread."""
    if len(samples) < 2:
        return {"median": samples[0], "spread": 0.0, "samples": len(samples)}
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return {"median": statistics.median(samples), "spread": high - low, "samples": len(samples)}


def interleaved(contenders, rounds, samples):
    """{name: summary}: every contender in every round, beginning with another one each time, after a round that is not
    counted. One that fails is left out of the rest; failures is {name: reason}."""
    names = list(contenders)
    times = {name: [] for name in names}
    failures = {}
    for number in range(rounds + 1):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            if name in failures:
                continue
            try:
                measured = contenders[name].measure(samples)
            except Exception as failure:  # a peer must not end the run, whatever it throws
                failures[name] = str(failure)
                continue
            if number > 0:
                times[name] += measured
    return {name: summary(times[name]) for name in names if times[name] and name not in failures}, failures
