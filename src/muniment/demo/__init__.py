"""The sample database of ``muniment demo``: an invented city's register of trees."""

from muniment.demo.sample import build_sample, sample_config

__all__ = ["build_sample", "sample_config"]
