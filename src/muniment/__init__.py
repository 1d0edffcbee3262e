"""Muniment keeps relational databases readable, provable and citable for a hundred years."""

__version__ = "0.1.0"
