"""Where the ``muniment`` command starts: early enough to be stopped without a fuss."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; Ctrl-C is answered even while the program is still being loaded."""
    try:
        from muniment.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("muniment: stopped; nothing was left behind\n")
        sys.stderr.flush()
        os._exit(130)


if __name__ == "__main__":
    main()
