"""The command `featherjet`: one module per subcommand, with `add(commands)` and `run(args) -> exit code`.

Exit codes: 0 success; 1 a check failed; 2 an error, printed as one line; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .. import __version__
from ..errors import FeatherjetError, UnknownName
from ..settings import is_set
from . import (
    bench,
    cache,
    check,
    compile,
    demo,
    derive,
    export,
    info,
    plot,
    reproduce,
    robots,
    sample,
    transition,
    view,
)
from .output import fail, printed_warnings
from .parsing import Parser

COMMANDS = (info, robots, check, sample, derive, demo, bench, reproduce, compile, export, cache, transition, view, plot)
NAMES = tuple(module.__name__.rpartition(".")[2] for module in COMMANDS)
DESCRIPTION = "Rigid-body dynamics of robots, and all their analytical derivatives."
EXAMPLES = """\
examples:
  featherjet robots                                    list the robots that can be named
  featherjet info panda                                joints, limits, masses, and anything suspicious
  featherjet check my_robot.urdf --root free           verify every derivative of your robot
  featherjet sample quadruped --out states.npz         random states for the next command
  featherjet derive quadruped --states states.npz --out derivatives.npz
  featherjet demo                                      derive, verify and draw the built-in quadruped
  featherjet bench panda --quick                       compare the speed with Pinocchio and MuJoCo
  featherjet transition arm --from a.json --to b.json --duration 1.2 --out t.npz      the motion of least torque
  featherjet view t.npz                                play it in the browser

Each command has its own --help. Errors are one line; --debug or FEATHERJET_DEBUG=1 adds the traceback."""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(prog="featherjet", description=DESCRIPTION, epilog=EXAMPLES)
    top.add_argument("--version", action="version", version=f"featherjet {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    for command in COMMANDS:
        command.add(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors become one line on stderr."""
    reserve_streams()
    try:
        with terminable(), printed_warnings():
            return run(arguments)
    except KeyboardInterrupt:
        fail("interrupted", label="")
        return 130


def run(arguments: Sequence[str] | None) -> int:
    """Parse, run, and explain errors; Ctrl-C is the caller's."""
    debug = is_set("FEATHERJET_DEBUG")
    if sys.stdout is None:
        fail("stdout is closed; redirect it to a file, or to /dev/null")
        return 2
    try:
        args = parsed(sys.argv[1:] if arguments is None else list(arguments))
        debug |= args.debug
        code = args.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return silenced()
    except SystemExit as stop:  # argparse has printed an error or the help; or rich met a pipe whose reader has gone
        return int(stop.code or 0) if flushed() else silenced()
    except (FeatherjetError, OSError, MemoryError) as error:
        if debug:
            traceback.print_exc()
        fail(in_shell(describe(error)))
        if not flushed():
            silenced()
        return 2


def parsed(words: list[str]) -> argparse.Namespace:
    """The arguments; without any, the help is shown. Leaves by SystemExit if there is nothing to run."""
    top = parser()
    if not words:
        top.print_help()
        top.exit()
    if not words[0].startswith("-") and words[0] not in NAMES:
        top.error(str(UnknownName("command", words[0], NAMES)))
    args, unknown = top.parse_known_args(words)
    if unknown:
        args.parser.refuse(unknown)
    return args


def describe(error: BaseException) -> str:
    """An error in one sentence for the user."""
    if isinstance(error, FeatherjetError):
        return str(error)
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return f"{error.filename}: {what}" if error.filename else what
    return "out of memory; try fewer states at a time"


def in_shell(text: str) -> str:
    """An error's advice as one would type it here: root='free' is --root free."""
    text = text.replace("`root`", "--root")
    return re.sub(r"\b(root|mimic|strict)=(?:'(\w+)'|True)", lambda m: f"--{m[1]} {m[2] or ''}".strip(), text)


def reserve_streams() -> None:
    """Open closed standard streams on nothing: else a file we write would take their number, and what they print."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number


def flushed() -> bool:
    """Whether everything printed has reached stdout."""
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def silenced() -> int:
    """Redirect stdout, whose reader has gone, to nothing, so that Python's last flush does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


@contextmanager
def terminable() -> Iterator[None]:
    """Turn SIGTERM into KeyboardInterrupt, so that unfinished files are removed.

    SIGINT too, where a shell that starts programs in the background has it ignored: whoever sends it means it.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signs = (signal.SIGTERM, signal.SIGINT) if ignored else (signal.SIGTERM,)
    try:
        before = {sign: signal.signal(sign, interrupt) for sign in signs}
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
