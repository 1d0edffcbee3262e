"""The doors: protocols and pages over HTTP."""
