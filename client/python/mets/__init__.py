"""METS in Python programs: `mets.torch` for PyTorch.

Importing this package does nothing else; it needs no other package.
"""
