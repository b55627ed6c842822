"""`python -m zwang` runs the command line, as `zwang` does."""

from __future__ import annotations

from zwang.cli import main

if __name__ == "__main__":
    main()
