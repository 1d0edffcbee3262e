"""The parts of documents that fragments name, cut out of the octets (draft 3.4)."""

from muniment.fragments.extract import Extract, extract
from muniment.fragments.quotations import Quotation, check_quotation

__all__ = ["Extract", "Quotation", "check_quotation", "extract"]
