"""Try one file in a process of its own: `python -m tests.read.child FILE` prints the outcome as JSON."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from tests.read.badinputs import try_file

outcome = try_file(Path(sys.argv[1]))
unit = 1 if sys.platform == "darwin" else 1024
outcome.megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
print(json.dumps(vars(outcome)))
