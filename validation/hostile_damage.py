"""How the hostile trial damages a file: bytes, numbers, lines, and the values of a document."""

from __future__ import annotations

import json
import random
import re
from typing import Any

NUMBERS = (
    *(b"-1", b"0", b"1", b"-0", b"0.5", b"1e15", b"1e99", b"1e999", b"nan", b"inf", b"-9", b"99999999999999999999", b"9" * 5000),
    *(b"2147483646", b"2147483648", b"9007199254740993", b"4611686018427387904", b"9223372036854775807", b"9223372036854775808"),
)
TEXTS = (
    *(b"", b"-", b'"', b"'", b"|", b",", b";", b"=", b"[", b"]", b"{", b"}", b"\\", b"\r", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf"),
    *(b"\x1b[2J", b"\xe2\x80\xae", b"null", b"true", b"None", b"Europe", b"../..", b"x.py:Y", b"2025-02-30T00:00:00", b"[" * 5000),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 0.5, 1e300, 2**31, 2**53 + 1, 2**62, 2**63, 10**30, float("nan"), float("inf")),
    *("", "x", "-1", "Europe", "\0", "x.py:Y", [], {}, [[]], [1, "a"], {"a": 1}, ["x"] * 3),
)
_NUMBER = re.compile(rb"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_KEY = re.compile(rb"(?m)^\s*[\w.]+\s*=\s*(.+)$")


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with one to three damages."""
    if content.lstrip().startswith((b"{", b"[{")) and b"}\n{" not in content and rng.random() < 0.6:
        return _document(content, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = rng.choice((_number, _number, _value, _bytes, _bytes, _lines))(content, rng)
    return content


DIGITS = (
    *("".join(chr(first + digit) for digit in range(10)) for first in (0x660, 0x6F0, 0x966, 0xFF10, 0x1D7CE)),
    *("⁰¹²³⁴⁵⁶⁷⁸⁹", "₀₁₂₃₄₅₆₇₈₉", "⓪①②③④⑤⑥⑦⑧⑨", "〇一二三四五六七八九", "½ⅠⅡⅢⅣⅤⅥⅦⅧⅨ"),
)
"""Digits that Python takes for a number, that it calls digits and cannot read, and numerals that are none."""


def odd_digits(content: bytes, rng: random.Random) -> bytes:
    """Other digits than those of ASCII in some numbers, in the same column of every line, or in all numbers."""
    digits = {str(digit).encode(): odd.encode() for digit, odd in enumerate(rng.choice(DIGITS))}
    places = [one.span() for one in re.finditer(rb"[0-9]+", content)]
    if not places:
        return content
    match rng.randrange(4):
        case 0:
            chosen = set(rng.sample(places, min(3, len(places))))
        case 1:
            chosen = set(places)
        case 2:
            chosen = {one for one in places if rng.random() < 0.1}
        case _:
            every = rng.randrange(2, 40)
            chosen = set(places[rng.randrange(every) :: every])
    pieces, end = [], 0
    for first, last in sorted(chosen):
        pieces += [content[end:first], *(digits[content[k : k + 1]] for k in range(first, last))]
        end = last
    return b"".join([*pieces, content[end:]])


def _number(content: bytes, rng: random.Random) -> bytes:
    """Another number in the place of one."""
    places = list(_NUMBER.finditer(content))
    if not places:
        return _bytes(content, rng)
    one = rng.choice(places)
    return content[: one.start()] + rng.choice(NUMBERS) + content[one.end() :]


def _value(content: bytes, rng: random.Random) -> bytes:
    """Another value after an equals sign, as TOML and headers have them."""
    places = list(_KEY.finditer(content))
    if not places:
        return _bytes(content, rng)
    one = rng.choice(places)
    value = json.dumps(rng.choice(VALUES)).encode()
    return content[: one.start(1)] + value + content[one.end(1) :]


def _bytes(content: bytes, rng: random.Random) -> bytes:
    """Some bytes left out, put in, changed or repeated; or the end cut off."""
    a = rng.randint(0, len(content))
    b = min(len(content), a + rng.choice((1, 2, 10, 100)))
    match rng.randrange(5):
        case 0:
            return content[:a] + content[b:]
        case 1:
            return content[:a] + rng.choice(TEXTS) + content[a:]
        case 2:
            return content[:a] + bytes([rng.randrange(256)]) + content[a + 1 :]
        case 3:
            return content[:b] + content[a:]
    return content[:a]


def _lines(content: bytes, rng: random.Random) -> bytes:
    """A line left out, doubled, or moved; or other line ends."""
    lines = content.split(b"\n")
    k = rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            del lines[k]
        case 1:
            lines.insert(rng.randrange(len(lines) + 1), lines[k])
        case 2:
            lines.insert(rng.randrange(len(lines)), lines.pop(k))
        case 3:
            return content.replace(b"\n", b"\r")
        case 4:
            return content.replace(b"\n", b"\r\n")
    return b"\n".join(lines)


def _document(content: bytes, rng: random.Random) -> bytes:
    """One value of a JSON document left out or replaced, at any depth."""
    document = json.loads(content)
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                visit(node[key])

    visit(document)
    node, key = rng.choice(places)
    match rng.randrange(4):
        case 0:
            del node[key]
        case 1 if isinstance(node, list):
            node.insert(key, node[key])
        case _:
            node[key] = rng.choice(VALUES)
    text = json.dumps(document).encode()
    return b"[" * 5000 + text if rng.random() < 0.02 else text
