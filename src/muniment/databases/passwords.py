"""Passwords that are not in the URL: from the environment, or from the person at the terminal."""

from __future__ import annotations

import getpass
import os
import sys

__all__ = ["ask_password", "known_password"]


def known_password() -> str | None:
    """Return the password that MUNIMENT_PASSWORD holds, if any."""
    return os.environ.get("MUNIMENT_PASSWORD") or None


def ask_password(place: str) -> str | None:
    """Ask for a password at the terminal; None if nobody sits there."""
    if not sys.stdin.isatty():
        return None
    return getpass.getpass(f"Password for {place}: ")
