"""Samples to the figures that are printed."""

import math
import statistics


def summary(samples):
    """Median, and the distance between the quartiles as the spread."""
    if len(samples) < 2:
        return {"median": samples[0], "spread": 0.0, "samples": len(samples)}
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return {"median": statistics.median(samples), "spread": high - low, "samples": len(samples)}


def median_interval(samples):
    """Between which samples the true median lies, at 95%: by their order, whatever they are distributed like."""
    ordered = sorted(samples)
    reach = 0.98 * math.sqrt(len(ordered))
    middle = (len(ordered) - 1) / 2
    return [ordered[max(0, math.floor(middle - reach))], ordered[min(len(ordered) - 1, math.ceil(middle + reach))]]


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
