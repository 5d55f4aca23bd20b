"""The page on the compilers names every module of them."""

from __future__ import annotations

import re

from helpers import ROOT

SOURCE = ROOT / "src" / "featherjet"


def described() -> dict[str, list[str]]:
    """The modules that the page describes, by package."""
    page = (ROOT / "docs" / "compiler.md").read_text()
    page = page[page.index("## Every module") :]
    sections = re.findall(r"^### `(.+?)`\n(.*?)(?=^### |\Z)", page, re.M | re.S)
    return {package: sorted(re.findall(r"^- `(\w+)`: .", text, re.M)) for package, text in sections}


def test_every_module_of_the_compilers_is_described():
    modules: dict[str, list[str]] = {}
    for path in sorted([*SOURCE.glob("jit/**/*.py"), *SOURCE.glob("treejit/**/*.py")]):
        if path.stem != "__init__":
            modules.setdefault(path.parent.relative_to(SOURCE).as_posix(), []).append(path.stem)
    assert described() == {package: sorted(names) for package, names in modules.items()}
