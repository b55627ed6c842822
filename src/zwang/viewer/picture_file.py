"""Writing of figures to files, atomically: a file is written completely or left unchanged."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.figure import Figure

from zwang.atomic import write_file
from zwang.errors import WriteError


def save_picture(figure: Figure, path: str | Path) -> None:
    """Write a figure in the format given by the file's suffix.

    Raises WriteError for a suffix that is no format of pictures, and if the file cannot be written; an
    existing file is then unchanged.
    """
    suffix, formats = Path(path).suffix, figure.canvas.get_supported_filetypes()
    if suffix and suffix[1:].lower() not in formats:
        raise WriteError(
            f"{str(path)!r} cannot be written: {suffix!r} is no format of pictures; give one of "
            f"{', '.join('.' + name for name in sorted(formats))}"
        )
    content = io.BytesIO()
    figure.savefig(content, dpi=150, format=Path(path).suffix.lstrip(".") or None)
    write_file(path, content.getvalue())
