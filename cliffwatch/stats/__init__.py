"""Percentiles with their n, intervals of percentiles, shares and rates, differences, and sketches that merge."""

from cliffwatch.stats.percentile import Percentile, SampleNeeds, percentile, sample_needs
from cliffwatch.stats.sketch import Sketch
from cliffwatch.stats.wilson import wilson

__all__ = ["Percentile", "SampleNeeds", "Sketch", "percentile", "sample_needs", "wilson"]
