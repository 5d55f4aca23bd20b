"""`featherjet cache`: the compiled code on disk."""

from __future__ import annotations

import argparse
from typing import Any

from ..evaluate import crossover
from ..jit import cache
from .output import line
from .parsing import command

EXAMPLES = """\
examples:
  featherjet cache info                          where compiled code is stored, and how much
  featherjet cache clear                         delete it; it is compiled again when needed
  FEATHERJET_CACHE_DIR=~/fj featherjet ...       store it elsewhere; if empty, store none
  FEATHERJET_CACHE_MB=64 featherjet ...          keep at most 64 MB: what was used least recently goes

Robots with the same kinds of joints share a file. Files of other versions or CPUs are ignored, and damaged
ones are detected and replaced, so clearing the cache is never necessary."""


def add(commands: Any) -> None:
    sub = command(commands, "cache", run, "show or delete the compiled code on disk", EXAMPLES)
    sub.add_argument("action", choices=("info", "clear"), help="what to do")


def run(args: argparse.Namespace) -> int:
    folder = cache.folder()
    if folder is None:
        line(f"no code is kept on disk: {cache.why_off()}")
        return 0
    if args.action == "clear":
        line(f"{folder}: {cache.clear()} files removed")
        return 0
    sizes = [path.stat().st_size for path in cache.files()]
    line(f"{folder}: {len(sizes)} files, {sum(sizes) / 1e6:.3g} MB")
    for backend, n in crossover.measured().items():
        line(f"measured here: the method fdsva takes AZA from {n} dofs on ({backend})")
    return 0
