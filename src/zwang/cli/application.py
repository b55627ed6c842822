"""The application `zwang` with its commands, and its entry point."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from cyclopts import App

import zwang as zw
from zwang.cli.command_options import examples
from zwang.cli.commands import COMMANDS
from zwang.cli.console import prepare_stdout, print_to_stderr, show_warning
from zwang.cli.remedies import use_options_of_command
from zwang.compiler.runtime.threads import is_compiling
from zwang.errors import ZwangError, ZwangWarning
from zwang.mechanism.samples import SAMPLES

INTERRUPTED = 130  # the exit status that shells expect after Ctrl-C

app = App(
    name="zwang",
    version=zw.__version__,
    help="Multibody dynamics by Gauss's principle of least constraint: derive the equations of motion of a "
    "mechanism, simulate it with compiled code, and compute its constraint forces and inverse kinematics.\n\n"
    "MODEL is the path of a URDF, MJCF or JSON file, or the name of a sample mechanism: "
    f"{', '.join(SAMPLES)}. `zwang COMMAND --help` describes a command.",
    help_epilogue=examples(
        "zwang demo",
        "zwang info furuta",
        "zwang simulate furuta --duration 2 --worlds 64 --plot run.png",
        "zwang equations furuta --format latex",
        "zwang --install-completion",
    ),
)
app.register_install_completion_command(
    help="Install tab completion for the shell you use, or for the one that --shell names."
)
for path, lines in COMMANDS.items():
    app.command(f"zwang.cli.{path}", name=path.partition(":")[2], help_epilogue=examples(*lines))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. An error is printed as one message; the exit status is then 1."""
    prepare_stdout()
    use_options_of_command(command_of(arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("always", ZwangWarning)
        warnings.showwarning = show_warning
        try:
            status = app(arguments)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as `head`, has read enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            status = 0
        except (ZwangError, OSError) as error:
            print_to_stderr("error", "bold red", _message(error))
            status = 1
        except KeyboardInterrupt:
            status = INTERRUPTED
            if is_compiling():  # an ordinary exit would wait until LLVM has finished compiling
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def command_of(arguments: Sequence[str] | None) -> App | None:
    """The command that the arguments of the process call; None where they ask for the help of all commands,
    which are loaded then for their descriptions, or for the version.
    """
    names, _, _ = app.parse_commands(arguments)
    if names and not names[0].startswith("-"):
        return app[names[0]]
    if not names or names[0] in app.help_flags:
        for name in app:
            app[name]
    return None


def _message(error: BaseException) -> str:
    """The text of an error; of an error of the operating system, the file and the reason."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)
