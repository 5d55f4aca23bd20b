"""What MkDocs does beside Markdown: pages from files outside docs/, reference entries, and equations as MathML.

`mkdocs.yml` names this file as a hook. Browsers draw MathML by themselves, so that the pages need no script for it.
"""

from __future__ import annotations

import ast
import html
import logging
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, InclusionLevel

sys.path.insert(0, str(Path(__file__).parent))
import displays
import reference

ROOT = Path(__file__).parent.parent.parent
PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
SHIM = "https://unpkg.com/iframe-worker/shim"
PICTURES = "figures/examples"
NOT_IN_NAV = InclusionLevel.NOT_IN_NAV
log = logging.getLogger("mkdocs.featherjet")


def on_config(config: Any) -> Any:
    """A page of docs/ that mkdocs.yml does not place is a guide."""
    placed = str(config["nav"])
    guides = next(part["Guides"] for part in config["nav"] if "Guides" in part)
    guides += [page.name for page in sorted((ROOT / "docs").glob("*.md")) if f"{page.name}'" not in placed]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made from other files of the repository."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "examples.md", content=gallery()))
    for script in sorted(ROOT.glob("examples/*.py")):
        files.append(File.generated(config, f"examples/{script.stem}.md", content=example_page(script)))
        files.get_file_from_path(f"examples/{script.stem}.md").inclusion = NOT_IN_NAV
    for record in sorted((ROOT / "docs/decisions").glob("0*.md")):
        files.get_file_from_path(f"decisions/{record.name}").inclusion = NOT_IN_NAV
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Expand the entries of the reference, and lead links to where the site has their pages."""
    here = page.file.src_uri
    source = next((s for s, p in PAGES.items() if p == here), f"docs/{here}")
    text = markdown if here.startswith("examples/") or here == "examples.md" else led(markdown, source, here)
    if here in displays.PAGES:
        text = displays.typeset(text, here not in ("direct.md", "second-order.md"))
    text = re.sub(r"^ {3}- ", "    - ", text, flags=re.M)  # where this Markdown wants its inner lists
    return reference.expanded(text) if here.startswith("reference/") else text


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Equations as MathML."""
    return FORMULA.sub(lambda m: formula(m[2], m[1] == "div", page.file.src_uri), content)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The theme would fetch a script for search from the network; the site has its own copy."""
    return output.replace(SHIM, "../" * page.file.dest_uri.count("/") + "assets/iframe-worker.js")


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """The same for the page of errors."""
    return output.replace(SHIM, "assets/iframe-worker.js")


def formula(text: str, block: bool, where: str) -> str:
    """One equation, from LaTeX."""
    try:
        found = convert(html.unescape(text).strip(), display="block" if block else "inline")
    except Exception as error:  # the converter raises many kinds
        log.warning("%s: cannot typeset %r (%s)", where, text, error)
        return html.escape(text)
    return f'<div class="equation">{found}</div>' if block else found


def led(markdown: str, source: str, here: str) -> str:
    """Links of a file of the repository, as links of its page."""

    def turned(match: re.Match[str]) -> str:
        link, anchor = match[1], match[2] or ""
        if "://" in link:
            return match[0]
        at = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        return f"]({posixpath.relpath(page_of(at), posixpath.dirname(here) or '.')}{anchor})"

    parts = re.split(r"(^```.*?^```)", markdown, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(turned, part) for part in parts)


def page_of(path: str) -> str:
    """The page of a file of the repository."""
    if path in PAGES:
        return PAGES[path]
    if path == "examples":
        return "examples.md"
    if path.startswith("examples/"):
        return path.removesuffix(".py") + ".md"
    return path.removeprefix("docs/")


# The examples


def gallery() -> str:
    """The page of all examples."""
    rows = ["# Examples", "", "Each script runs on its own, and the tests run them all.", ""]
    for script in sorted(ROOT.glob("examples/*.py")):
        rows += [f"## [{title(script)}](examples/{script.stem}.md)", "", summary(script), ""]
        rows += [f"![{title(script)}]({picture(script)}){{ width=660 }}", ""] if shown(script) else []
    return "\n".join(rows)


def example_page(script: Path) -> str:
    """The page of one example: what it says of itself, its picture, and its code."""
    code = script.read_text()
    text = ast.get_docstring(ast.parse(code)) or ""
    image = f"![{title(script)}](../{picture(script)})\n\n" if shown(script) else ""
    body = code[code.index('"""', 3) + 3 :].strip()
    return f"# {title(script)}\n\n{text}\n\n{image}```python\n{body}\n```\n\n`examples/{script.name}`\n"


def title(script: Path) -> str:
    number, words = script.stem.split("_", 1)
    return f"{number} {words.replace('_', ' ')}"


def summary(script: Path) -> str:
    return (ast.get_docstring(ast.parse(script.read_text())) or "").split("\n\n")[0].replace("\n", " ")


def picture(script: Path) -> str:
    """Named without the number, which may change."""
    return f"{PICTURES}/{script.stem.split('_', 1)[1]}.png"


def shown(script: Path) -> bool:
    return (ROOT / "docs" / picture(script)).exists()
