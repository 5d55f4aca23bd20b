"""The size from which a method takes its second way: pinned by the user, measured on this host, or the default.

[IDSVA] Table III: AZA overtakes DMM at 50 to 450 dofs, depending on compiler and CPU. `featherjet reproduce singh-fig7`
measures where it does here and remembers it next to compiled code, for this version of featherjet. FEATHERJET_AZA_FROM
pins it, so that results do not depend on what was measured.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..algorithms.derivatives import fdsva
from ..jit import cache
from ..settings import setting, whole_number

VARIABLE = "FEATHERJET_AZA_FROM"
DEFAULTS = {"compiled": fdsva.AZA_FROM_TRACED, "numpy": fdsva.AZA_FROM}


def aza_from(backend: str) -> int:
    """The number of dofs from which `fdsva` takes AZA on a backend."""
    given = whole_number(VARIABLE, "degrees of freedom")
    return measured().get(backend, DEFAULTS[backend]) if given is None else given


def measured() -> dict[str, int]:
    """What was measured on this host, by backend."""
    return dict(_kept(cache.folder(), *_place()))


def remember(sizes: Mapping[str, int]) -> None:
    """Keep what was measured on this host; one number for each backend that was."""
    name, host = _place()
    cache.write(name, host, json.dumps({**measured(), **sizes}).encode())
    _kept.cache_clear()


def _place() -> tuple[str, str]:
    """A name in the cache, and the host: others that share the folder have their own, and so has each CPU target."""
    host = platform.node(), platform.machine(), np.__version__, setting("FEATHERJET_CPU") or "native"
    return cache.name_of("crossover", *host), "\n".join(host)


@lru_cache(maxsize=8)
def _kept(folder: Path | None, name: str, host: str) -> dict[str, int]:
    found = cache.read(name, host)
    return json.loads(found) if found else {}
