"""What of the zoo is recorded, at the sizes that live.py says."""

MODELS = ["resnet50", "bert", "ncf"]
FIRST, LAST = 5, 12  # The steps; the first is 1.
