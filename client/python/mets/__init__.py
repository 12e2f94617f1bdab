"""METS in Python programs: `mets.tensorflow` for TensorFlow, `mets.torch` for
PyTorch, and `python -m mets` for metsctl.

Importing this package does nothing else; it needs no other package.
"""
