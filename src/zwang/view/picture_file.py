"""Figures as files, written whole or not at all."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.figure import Figure

from zwang.atomic import write_file


def save_picture(figure: Figure, path: str | Path) -> None:
    """Write a figure in the format of the file's ending. Raises WriteError, after which an old file is as it was."""
    content = io.BytesIO()
    figure.savefig(content, dpi=150, format=Path(path).suffix.lstrip(".") or None)
    write_file(path, content.getvalue())
