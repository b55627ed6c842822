"""Writing of figures to files, atomically: a file is written completely or left unchanged."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.figure import Figure

from zwang.atomic import write_file


def save_picture(figure: Figure, path: str | Path) -> None:
    """Write a figure in the format given by the file's suffix.

    Raises WriteError if the file cannot be written; an existing file is then unchanged.
    """
    content = io.BytesIO()
    figure.savefig(content, dpi=150, format=Path(path).suffix.lstrip(".") or None)
    write_file(path, content.getvalue())
