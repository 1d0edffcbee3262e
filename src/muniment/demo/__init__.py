"""The sample databases of ``muniment demo``: an invented city, with what real data has."""

from muniment.demo.council import build_council
from muniment.demo.sample import build_sample, sample_config

__all__ = ["build_council", "build_sample", "sample_config"]
