"""The registry of URN subnamespaces, document series and fragment schemes (GFD.191)."""

from muniment.registry.registration import Registration
from muniment.registry.review import Finding, check_snid, review
from muniment.registry.workflow import Entry, Registry

__all__ = ["Entry", "Finding", "Registration", "Registry", "check_snid", "review"]
