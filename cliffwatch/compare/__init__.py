"""Two runs against each other: better, worse, no change shown, or too little data to say."""

from cliffwatch.compare.compare import compare
from cliffwatch.compare.result import Change, Comparison

__all__ = ["Change", "Comparison", "compare"]
