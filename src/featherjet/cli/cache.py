"""`featherjet cache`: the machine code that is kept on disk."""

from __future__ import annotations

import argparse
from typing import Any

from ..jit import cache
from .output import line
from .parsing import command

EXAMPLES = """\
examples:
  featherjet cache info                          where compiled code is kept, and how much of it
  featherjet cache clear                         remove it; it is compiled again when it is needed
  FEATHERJET_CACHE_DIR=/tmp/fj featherjet ...    keep it elsewhere; set to nothing, keep none

A file serves every robot with the same kinds of joints. Files of other versions and other CPUs are not used,
and damaged ones are noticed and made anew; to clear the cache is never necessary."""


def add(commands: Any) -> None:
    sub = command(commands, "cache", run, "show or clear the compiled code that is kept on disk", EXAMPLES)
    sub.add_argument("action", choices=("info", "clear"), help="what to do")


def run(args: argparse.Namespace) -> int:
    folder = cache.folder()
    if folder is None:
        line("no code is kept on disk: FEATHERJET_CACHE_DIR is empty")
        return 0
    if args.action == "clear":
        line(f"{folder}: {cache.clear()} files removed")
        return 0
    sizes = [path.stat().st_size for path in cache.files()]
    line(f"{folder}: {len(sizes)} files, {sum(sizes) / 1e6:.3g} MB")
    return 0
