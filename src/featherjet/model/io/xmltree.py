"""Reading XML that may be broken or hostile: a small tree that remembers lines, and no entities."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from ...errors import MissingFile, ModelError

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(slots=True, eq=False)
class Element:
    """One XML element; `source` and `line` say where it was found, `title` what messages call it."""

    tag: str
    attributes: dict[str, str]
    source: str
    line: int
    title: str
    children: list[Element] = field(default_factory=list, repr=False)

    def all(self, tag: str) -> list[Element]:
        """The direct children of that tag."""
        return [child for child in self.children if child.tag == tag]

    def one(self, tag: str) -> Element | None:
        """The direct child of that tag, if any; two of them are one too many."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].error(f"a second <{tag}>, the first is in line {found[0].line}")
        return found[0] if found else None

    def text(self, attribute: str) -> str:
        """A required attribute that is not empty."""
        value = self.attributes.get(attribute, "")
        if not value.strip():
            raise self.error(f"attribute {attribute!r} is missing or empty")
        return value

    def number(self, attribute: str, default: float | None = None) -> float:
        """An attribute that is one finite number; required unless there is a default."""
        if default is not None and attribute not in self.attributes:
            return default
        return self._parsed(attribute, self.text(attribute).strip())

    def vector(self, attribute: str, default: list[float] | None = None) -> list[float]:
        """An attribute that is three finite numbers; required unless there is a default."""
        if default is not None and attribute not in self.attributes:
            return default
        words = self.text(attribute).split()
        if len(words) != 3:
            raise self.error(f"{attribute}={self.attributes[attribute]!r}: expected 3 numbers, got {len(words)}")
        return [self._parsed(attribute, word) for word in words]

    def _parsed(self, attribute: str, word: str) -> float:
        value = float(word) if NUMBER.fullmatch(word) else math.nan
        if not math.isfinite(value):
            hint = "; a xacro expression: expand the file first" if "${" in word else ""
            raise self.error(f"{attribute}={self.attributes[attribute]!r}: {word!r} is not a finite number{hint}")
        return value

    def error(self, message: str) -> ModelError:
        """An error that says where this element stands and what it is called."""
        return ModelError(f"{self.source}:{self.line}: {self.title}: {message}")


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file; every way this can fail is an error of ours."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise MissingFile(f"{os.fspath(path)}: there is no such file") from None
    except IsADirectoryError:
        raise ModelError(f"{os.fspath(path)}: is a directory, not a model file") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise ModelError(f"{os.fspath(path)!r}: cannot be read ({error})") from None
    if not data.strip():
        raise ModelError(f"{os.fspath(path)}: the file is empty")
    return data


def parse(document: bytes | str, source: str) -> Element:
    """The root element of a document. A DOCTYPE is refused, and with it every trick entities can play."""
    stack: list[Element] = []
    roots: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        title = f"<{tag} name={attributes['name']!r}>" if "name" in attributes else f"<{tag}>"
        if "name" not in attributes and stack:  # a part of something that has a name, which helps to find it
            title += f" of {stack[-1].title.rpartition(' of ')[2]}"
        element = Element(tag, attributes, source, parser.CurrentLineNumber, title)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(tag: str) -> None:
        stack.pop()

    def refuse(*_: object) -> None:
        line = parser.CurrentLineNumber
        raise ModelError(f"{source}:{line}: a DOCTYPE; document types and entities are refused, remove it")

    parser = _parser(document)
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    _feed(parser, document, source)
    return roots[0]


def root_tag(document: bytes | str) -> str | None:
    """The tag of the root element, or None if the document breaks before it."""
    found: list[str] = []

    def start(tag: str, _: dict[str, str]) -> None:
        found.append(tag)
        raise StopIteration

    parser = _parser(document)
    parser.StartElementHandler = start
    try:
        _feed(parser, document, "")
    except (StopIteration, ModelError):
        pass
    return found[0] if found else None


def _parser(document: bytes | str) -> expat.XMLParserType:
    """A str is no longer in the encoding its own declaration may name."""
    return expat.ParserCreate("utf-8" if isinstance(document, str) else None)


def _feed(parser: expat.XMLParserType, document: bytes | str, source: str) -> None:
    data = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise ModelError(f"{source}:{error.lineno}: not well-formed XML ({reason})") from None
    except (LookupError, UnicodeError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{source}: its text cannot be decoded ({error})") from None
