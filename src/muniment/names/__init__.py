"""The book of names: PDIs minted, bound to octets, resolved, and what is asserted about them.

    with Names.open(folder) as names:
        pdi = names.mint("db.example.ch", format="siard")[0]
        names.bind(pdi, digest=sha256, length=length, location="objects/…")
        names.resolve(pdi)

The folder's journal ``names.jsonl`` is all that matters; the other files are made from it.
"""

from muniment.names.book import Names
from muniment.names.values import Assertion, Binding, Block, NewBinding, Resolution, Series

__all__ = ["Assertion", "Binding", "Block", "Names", "NewBinding", "Resolution", "Series"]
