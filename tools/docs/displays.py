"""Equations that pages display as plain text, for typesetting: `S_iᵀ (2B_k x + I_k y)` as LaTeX.

docs/direct.md and docs/second-order.md are proofs that people also read in an editor. Their displays are indented
lines; two spaces or more separate columns, and a number in brackets at the end of a line is the equation's.
"""

# ruff: noqa: RUF001
from __future__ import annotations

import re
import unicodedata

PAGES = ("direct.md", "second-order.md", "methods.md", "contacts.md")
ASCII = {
    "^T": "ᵀ",
    "^-1": "⁻¹",
    "^-T": "⁻ᵀ",
    "^2": "²",
    "^3": "³",
    "xbar*": "x\u0304*",
    " x* ": " ×* ",
    " x ": " × ",
    " . ": " · ",
}
DISPLAY = re.compile(r"(?:^ {4}\S.*\n(?:\n(?= {4}\S))?)+", re.M)
TAG = re.compile(r"\s\((\d+[a-z]?)\)$")
LETTERS = {
    "Ω": r"\Omega", "φ": r"\varphi", "η": r"\eta", "τ": r"\tau", "μ": r"\mu", "ω": r"\omega", "ν": r"\nu",
    "π": r"\pi", "λ": r"\lambda", "δ": r"\delta", "ε": r"\varepsilon",
    "tau": r"\tau", "lambda": r"\lambda", "mu": r"\mu", "gamma": r"\gamma", "xi": r"\xi", "xid": r"\dot{\xi}",
    "Omega": r"\Omega", "eta": r"\eta", "kd": "k_d", "kp": "k_p", "qd": r"\dot{q}", "sdd": r"\ddot{s}",
    "Jd": r"\dot{J}", "Sd": r"\dot{S}", "Psid": r"\dot{\Psi}", "Psidd": r"\ddot{\Psi}",
}  # fmt: skip
SIGNS = {
    "×*": r"\times^*", "×": r"\times", "·": r"\cdot", "−": "-", "Σ": r"\sum", "←": r"\leftarrow", "∂": r"\partial",
    "⟨": r"\langle", "⟩": r"\rangle", "≤": r"\le", "≥": r"\ge", "→": r"\to",
}  # fmt: skip
ACCENTS = {"\u0304": r"\bar", "\u0303": r"\tilde", "\u0307": r"\dot", "\u0308": r"\ddot"}
POWERS = {"ᵀ": r"\top", "⁻¹": "-1", "⁻ᵀ": r"-\top", "²": "2", "³": "3", "′": r"\prime", "'": r"\prime"}
SPELLINGS = {"×*": r"×\*", "x\u0304*": "x\u0304\\*", "Psidd": "Ψ\u0308", "Psid": "Ψ\u0307", "Sd": "S\u0307"}
SPELLED = re.compile(rf"(?<![`\w])({'|'.join(map(re.escape, SPELLINGS))})(?![a-z])")
GREEK = "Ωφητμωνπλδε"
RAISED = "(?:ᵀ|⁻¹|⁻ᵀ|²|³|′|')*"
LOWERED = rf"(?:_(?:p\([A-Z]\)|[A-Za-z{GREEK}]+|\d+))?"
INDEXED = re.compile(
    rf"(?<![A-Za-z_])((?!by_)(?:gamma|[A-Z]{{1,3}}|[a-z]{{1,3}}|[a-z][A-Z]|SPd|[{GREEK}ΨΣ])[\u0300-\u036f]*)"
    rf"_(p\([A-Z]\)|parent|ang|lin|ext,k|ij|[A-Za-z{GREEK}]|\d)(?![A-Za-z_\d])"
)
POWERED = re.compile(r"\^(?:-1|-T|T|2|3)(?!\w)")
TOKEN = re.compile(
    r"(?P<dual>x\u0304\*)|(?P<number>\d+(?:\.\d+)?)"
    rf"|(?P<name>[{GREEK}]|d[{GREEK}]|[A-Za-z]+)(?P<accents>[\u0300-\u036f]*)(?P<wide>~?)(?P<count>\d?)"
    rf"(?P<part>(?:\.[a-z]+)?)(?P<primes>{RAISED})(?P<below>{LOWERED})(?P<powers>{RAISED})"
    rf"|(?P<sign>×\*|[×·−Σ←∂⟨⟩≤≥→])(?P<at>{LOWERED})(?P<above>{RAISED})"
    rf"|(?P<closing>[)\]])(?P<after>{RAISED})|(?P<other>\S)"
)


def typeset(markdown: str, ascii_signs: bool = False) -> str:
    """A page with its displays as LaTeX; of some pages these are written in ASCII: J^T, v x S."""
    parts = re.split(r"(^```.*?^```)", markdown, flags=re.M | re.S)
    return "".join(p if p.startswith("```") else prose(p, ascii_signs) for p in parts)


def prose(text: str, ascii_signs: bool) -> str:
    """Displays typeset, letters as in them, and the stars of ×* no emphasis."""
    parts = DISPLAY.split(text)
    found = [display(signed(m[0]) if ascii_signs else m[0]) for m in DISPLAY.finditer(text)]
    plain = [inline(SPELLED.sub(lambda m: SPELLINGS[m[0]], part), ascii_signs) for part in parts]
    return "".join(a + b for a, b in zip(plain, [*found, ""], strict=True))


def inline(text: str, ascii_signs: bool) -> str:
    """Letters within sentences with their indices below and, of ASCII, their powers above; code stays as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    for k in range(0, len(parts), 2):
        parts[k] = INDEXED.sub(r"\1<sub>\2</sub>", parts[k])
        if ascii_signs:
            parts[k] = POWERED.sub(lambda m: ASCII[m[0]], parts[k])
    return "".join(parts)


def signed(text: str) -> str:
    """ASCII signs as those of mathematics."""
    for plain, sign in ASCII.items():
        text = text.replace(plain, sign)
    return text


def display(text: str) -> str:
    """A display: each of its lines is an equation."""
    return "\n" + "".join(f"$$\n{equation(line.strip())}\n$$\n\n" for line in text.splitlines() if line.strip())


def equation(line: str) -> str:
    """The formulas of a line, and its number if it has one."""
    found = TAG.search(line)
    body = line[: found.start()].strip() if found else line
    formulas = [formula(cell) for cell in re.split(r"\s{2,}", body)]
    return r" \quad ".join(formulas) + (rf" \qquad ({found[1]})" if found else "")


def formula(text: str) -> str:
    """LaTeX of a formula with words in it."""
    tokens = list(TOKEN.finditer(unicodedata.normalize("NFD", text)))
    words = [is_word(token) for token in tokens]
    for k in range(1, len(words) - 1):  # "is a strict ancestor"
        words[k] |= words[k - 1] and words[k + 1] and tokens[k]["name"] == "a"
    out = []
    for token, word in zip(tokens, words, strict=True):
        if word and out and out[-1].startswith(r"\text"):
            out[-1] = f"{out[-1][:-1]}{token[0]} }}"
        else:
            out.append(rf"\text{{ {token[0]} }}" if word else symbol(token))
    return " ".join(out)


def is_word(token: re.Match[str]) -> bool:
    """Whether it is English: several small letters, and nothing attached; da is a differential."""
    spoken = token[0] in LETTERS or token[0][1:] in LETTERS
    return bool(re.fullmatch(r"[a-z]{2,}", token[0])) and not (spoken or re.fullmatch("d[a-z]", token[0]))


def symbol(token: re.Match[str]) -> str:
    if token["dual"]:
        return r"\bar{\times}^*"
    if token["sign"]:
        return SIGNS[token["sign"]] + index(token["at"]) + power(token["above"])
    if token["closing"]:
        return token["closing"] + power(token["after"])
    if token["name"] is None:
        return token["number"] or token["other"]
    name = letters(token["name"])
    for accent in token["accents"]:
        name = f"{ACCENTS[accent]}{{{name}}}"
    name = rf"\widetilde{{{name}}}" if token["wide"] else name
    below = token["below"] or token["part"] or f" {token['count']}"
    return f"{name}{index(below)}{power(token['primes'] + token['powers'])}"


def letters(name: str) -> str:
    """A quantity's name: one letter, a differential, or several letters that stand together."""
    if name in LETTERS or len(name) == 1:
        return LETTERS.get(name, name)
    if name[0] == "d" and (len(name) == 2 or name[1:] in LETTERS):
        return f"d {LETTERS.get(name[1:], name[1:])}"
    return rf"\mathit{{{name}}}"


def index(mark: str) -> str:
    """A subscript, from `_k`, `.qq` or nothing."""
    text = mark[1:].strip()
    return f"_{{{LETTERS.get(text, text)}}}" if text else ""


def power(marks: str) -> str:
    found = [POWERS[m] for m in re.findall("ᵀ|⁻¹|⁻ᵀ|²|³|′|'", marks)]
    return f"^{{{' '.join(found)}}}" if found else ""
