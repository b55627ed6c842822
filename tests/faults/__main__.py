"""`python -m tests.faults`: killed processes, full disks, interrupts and corrupted files in two processes."""

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main([str(Path(__file__).parent), "-n", "2", *sys.argv[1:]]))
