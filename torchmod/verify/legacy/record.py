"""What was emulated, and how often."""

from collections import Counter

fired: Counter[str] = Counter()
