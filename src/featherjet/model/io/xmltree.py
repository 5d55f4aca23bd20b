"""XML as a small tree of elements that know their lines; safe for broken or hostile files, without entities."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from xml.parsers import expat

from ...errors import MissingFile, ModelError

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
MOST_BYTES = 256 << 20  # of a text file


@dataclass(slots=True, eq=False)
class Element:
    """One XML element; `source` and `line` say where it is, `title` is its name in messages."""

    tag: str
    attributes: dict[str, str]
    source: str
    line: int
    title: str
    children: list[Element] = field(default_factory=list, repr=False)

    def all(self, tag: str) -> list[Element]:
        """The direct children with that tag."""
        return [child for child in self.children if child.tag == tag]

    def child(self, tag: str) -> Element | None:
        """The only direct child with that tag, or None; a second one is an error."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].error(f"a second <{tag}>; the first is in line {found[0].line}")
        return found[0] if found else None

    def text(self, attribute: str) -> str:
        """The text of an attribute, which is required and not empty."""
        value = self.attributes.get(attribute, "")
        if not value.strip():
            raise self.error(f"attribute {attribute!r} is missing or empty")
        return value

    def number(self, attribute: str, default: float | None = None) -> float:
        """The value of an attribute that is one finite number; required unless there is a default."""
        if default is not None and attribute not in self.attributes:
            return default
        return self._parsed(attribute, self.text(attribute).strip())

    def vector(self, attribute: str, default: list[float] | None = None) -> list[float]:
        """The values of an attribute that is three finite numbers; required unless there is a default."""
        if default is not None and attribute not in self.attributes:
            return default
        return self.numbers(attribute, (3,))

    def numbers(self, attribute: str, counts: tuple[int, ...]) -> list[float]:
        """The values of an attribute that is so many finite numbers, one of `counts`."""
        words = self.text(attribute).split()
        if len(words) not in counts:
            wanted = " or ".join(map(str, counts))
            raise self.error(f"{attribute}={self.attributes[attribute]!r}: expected {wanted} numbers, got {len(words)}")
        return [self._parsed(attribute, word) for word in words]

    def _parsed(self, attribute: str, word: str) -> float:
        value = float(word) if NUMBER.fullmatch(word) else math.nan
        if not math.isfinite(value):
            hint = "; it is a xacro expression: expand the file first" if "${" in word else ""
            raise self.error(f"{attribute}={self.attributes[attribute]!r}: {word!r} is not a finite number{hint}")
        return value

    def error(self, message: str) -> ModelError:
        """An error whose message starts with the element's place and title."""
        return ModelError(f"{self.source}:{self.line}: {self.title}: {message}")


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file; every failure is a FeatherjetError."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)  # a device may never end
    except FileNotFoundError:
        raise MissingFile(f"{os.fspath(path)}: there is no such file") from None
    except IsADirectoryError:
        raise ModelError(f"{os.fspath(path)}: is a directory, not a model file") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise ModelError(f"{os.fspath(path)!r}: cannot be read ({error})") from None
    if len(data) > MOST_BYTES:
        raise ModelError(f"{os.fspath(path)}: has more than {MOST_BYTES >> 20} MB; no robot needs that much")
    if not data.strip():
        raise ModelError(f"{os.fspath(path)}: the file is empty")
    return data


def parse(document: bytes | str, source: str) -> Element:
    """The root element of a document. A DOCTYPE is refused, and with it all attacks by entities."""
    stack: list[Element] = []
    roots: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        title = f"<{tag} name={attributes['name']!r}>" if "name" in attributes else f"<{tag}>"
        if "name" not in attributes and stack:  # name the element that contains it, which is easier to find
            title += f" of {stack[-1].title.rpartition(' of ')[2]}"
        element = Element(tag, attributes, source, parser.CurrentLineNumber, title)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(tag: str) -> None:
        stack.pop()

    def refuse(*_: object) -> None:
        line = parser.CurrentLineNumber
        raise ModelError(f"{source}:{line}: a DOCTYPE is not allowed; remove it")

    parser = _parser(document)
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    _feed(parser, document, source)
    return roots[0]


def root_tag(document: bytes | str) -> str | None:
    """The tag of the root element, or None if the document is broken before it."""
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
    """A parser; a str is fed as UTF-8, whatever encoding its declaration names."""
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
        raise ModelError(f"{source}: the text cannot be decoded ({error})") from None
