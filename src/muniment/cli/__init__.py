"""The command line: options in, one call, results out. Nothing else in Muniment prints."""
