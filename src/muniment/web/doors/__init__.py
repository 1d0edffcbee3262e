"""The doors of a store: OAI-PMH, OpenURL, Identifier Locator, THTTP, and PDIs as URLs."""
