"""Read and write specifications, such as `NAME` or `NAME:value,key=value,...`, whose options dataclasses declare.

A `Family` lists the names, each with the class of its objects. The fields of the class are the options, with types and texts as in
`walltime.declared`; those that are `positional` may come first, without their names. Values are numbers, words, yes and no, lists such as
8/64, and specifications of other families, followed by their own options. The first option that such a value does not have belongs to the
outer specification again: in `easy:order=wfp:exponent=2,extra=none`, `extra` is an option of `easy`. `str(thing)` returns the spelling.

The same declarations check objects made in Python, generate the reference page, and complete words in a shell.
"""

from __future__ import annotations

import importlib
import math
import numbers
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin

from walltime.declared import KINDS, DeclaredField, Field, alternatives, described, is_within, keys_of, nearest, unwrapped, valid_options
from walltime.errors import PolicyError, WalltimeError
from walltime.wording import shown

T = TypeVar("T", bound="Specification")
FAMILIES: dict[type, Family[Any]] = {}
"""The families by the base class of their objects."""


class Specification:
    """Base of the frozen dataclasses that specifications describe; their fields are the options."""

    positional: ClassVar[tuple[str, ...]] = ()
    """Options that may come first, in this order, without their names; those without a default are always written in this way."""
    written: ClassVar[tuple[str, ...]] = ()
    """Options that are written even if they have their default values."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Named sets of options that may come first, as `cobalt` in `tang13:cobalt`."""
    separator: ClassVar[str] = "-"
    """The character between the words of an option's name when it is written; hyphens and underscores are read."""

    def __post_init__(self) -> None:
        """Replace texts by the objects that they specify; raise PolicyError for a field that violates its type or `Field`."""
        for key, one in options_of(type(self)).items():
            value = getattr(self, one.field)
            family = next((FAMILIES[kind] for kind in alternatives(one.kind) if kind in FAMILIES), None)
            if family is not None and isinstance(value, str):
                value = family.parse(value)
                object.__setattr__(self, one.field, value)
            if value is not one.default and not _fits(one, value):
                raise PolicyError(f"{key} must be {describe_value(one)}, not {shown(value)}", "wrong_value")

    def __str__(self) -> str:
        return self.label

    @property
    def unlisted(self) -> str:
        """Return the name of an object that has no name in its family."""
        return type(self).__name__

    @property
    def label(self) -> str:
        """Return the specification: the name, with the options that differ from the default."""
        name, implied = name_of(self)
        options = {key: one for key, one in options_of(type(self)).items() if one.field not in implied}
        texts = {key: spell(getattr(self, one.field), one) for key, one in options.items()}
        preset, values = next(((word, values) for word, values in presets_of(type(self), options).items() if self._has(values)), ("", {}))
        first = [key for key in self.positional if key in options and options[key].needed]
        rest = [(key, one, texts[key]) for key, one in self.differing().items() if key not in first and one.field not in values]
        parts = [*(texts[key] for key in first), *[preset] * bool(preset), *_in_order(rest)]
        return f"{name}:{','.join(parts)}" if parts else name

    def differing(self) -> dict[str, DeclaredField]:
        """Return the options that must be written: those that differ from the default and are not implied by the name."""
        implied = name_of(self)[1]
        options = {key: one for key, one in options_of(type(self)).items() if one.field not in implied}
        return {key: one for key, one in options.items() if key in self.written or self.is_written(one)}

    def _has(self, values: Mapping[str, Any]) -> bool:
        return all(getattr(self, name) == value for name, value in values.items())

    def is_written(self, option: DeclaredField) -> bool:
        """Return whether an option must be written because it differs from its default."""
        return bool(getattr(self, option.field) != option.default)


@dataclass(frozen=True)
class Variant:
    """A name of a family, the class of its objects, and the options that it implies.

    `kind`: the class, or `module:Class` to import it on first use, or a complete object. `implied`: the values of options that the name
    fixes. `start`: initial values of options, which a text may change; an object has this name only if its options have these values, and
    otherwise their defaults. `options`: if not None, only these can be set. `make`: a function to call in place of the class. `meaning`: by
    default the first sentence of the class. `free`: options with any name are accepted: whole numbers, numbers, yes and no, or texts.
    `declared`: the options, if they are not the fields of the class.
    """

    kind: Any
    implied: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] | None = None
    make: Callable[..., Any] | None = None
    meaning: str = ""
    free: bool = False
    declared: Mapping[str, DeclaredField] | None = None
    start: Mapping[str, Any] = field(default_factory=dict)

    @property
    def loaded(self) -> Any:
        """Return the class, or the complete object."""
        if not isinstance(self.kind, str):
            return self.kind
        module, _, name = self.kind.partition(":")
        return getattr(importlib.import_module(module), name)

    @property
    def keys(self) -> dict[str, DeclaredField]:
        """Return the options that may be set, by name."""
        if self.declared is not None:
            return dict(self.declared)
        if not isinstance(self.loaded, type):
            return {}
        able = {key: one for key, one in options_of(self.loaded).items() if one.field not in self.implied}
        return able if self.options is None else {key: able[key] for key in self.options}

    def makes(self, thing: object) -> bool:
        """Return whether an object belongs to this variant, regardless of its free options."""
        kind = type(thing)
        same = f"{kind.__module__}:{kind.__qualname__}" == self.kind if isinstance(self.kind, str) else self.kind in (kind, thing)
        exact = {one.field: one.default for one in options_of(kind).values()} | dict(self.start) if same and self.start else {}
        return same and self.make is None and all(getattr(thing, name) == value for name, value in {**exact, **self.implied}.items())


@dataclass(frozen=True, eq=False)
class Family(Mapping[str, T], Generic[T]):
    """The specifications of objects of one base class; as a mapping, it returns the object for each name without options.

    `title`: the name of such an object in messages. `variants`: the names. `own`: a function that returns the variant and the rest of a
    user's own specification such as FILE.py:NAME, None for other texts. `own_spelling`: the form of such texts. `group`: the kind of
    parts in installed packages, as in `walltime.plugins`.
    """

    base: type[T]
    title: str
    variants: Mapping[str, Variant]
    own: Callable[[str], tuple[Variant, str] | None] = lambda text: None
    own_spelling: str = ""
    group: str = ""

    def __post_init__(self) -> None:
        FAMILIES[self.base] = self

    def __getitem__(self, name: str) -> T:
        return self.parse(name)

    def __contains__(self, name: object) -> bool:
        return name in self.variants

    def __iter__(self) -> Iterator[str]:
        return iter(self.variants)

    def __len__(self) -> int:
        return len(self.variants)

    def parse(self, text: str | T, **defaults: Any) -> T:
        """Return the object that a text specifies, or the object itself; `defaults`: values of options that the text omits.

        Raises PolicyError for an unknown name or option, with a suggestion, and for an invalid value.
        """
        if isinstance(text, self.base):
            return text
        variant, values, _ = self.read(text)
        return self.build(text, variant, defaults | values)

    def read(self, text: object, more: Mapping[str, DeclaredField] | None = None) -> tuple[Variant, dict[str, Any], dict[str, Any]]:
        """Return the variant of a text, the values of its options by field, and the values of the options in `more`."""
        variant, rest = self.variant(text)
        return variant, *read_options(variant, rest, f"the {self.title} {shown(text)}", more)

    def build(self, text: object, variant: Variant, values: Mapping[str, Any]) -> T:
        """Return the object of a variant with these options."""
        if not isinstance(variant.loaded, type) and variant.make is None:
            made: T = variant.loaded
            return made
        try:
            made = (variant.make or variant.loaded)(**{**variant.implied, **variant.start, **values})
        except WalltimeError as error:
            raise PolicyError(f"the {self.title} {shown(text)}: {error}") from error
        return made

    def variant(self, text: object) -> tuple[Variant, str]:
        """Return the variant that a text names, and the rest of the text."""
        if not isinstance(text, str):
            raise PolicyError(f"{self.title} must be one such as {next(iter(self.variants))!r}, not {shown(text)}")
        name, _, rest = text.strip().partition(":")
        variant = self.variants.get(name.strip().lower())
        if variant is not None:
            return variant, rest
        own = self.own(text.strip())
        if own is not None:
            return own
        also = f", or {self.own_spelling}" if self.own_spelling else ""
        close = nearest(name.strip().lower(), self.variants)
        raise PolicyError(
            f"unknown {self.title} {shown(text)}{close or '.'} Valid options: {', '.join(self.variants)}{also}", "unknown_name"
        )


def read_options(
    variant: Variant, text: str, where: str, more: Mapping[str, DeclaredField] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse the options in a text after the name; return the values of a variant's options by field, and of the options in `more`.

    Raises PolicyError, whose message contains `where`, for an unknown, missing, repeated or invalid option.
    """
    keys, further = variant.keys, dict(more or {})
    by_letters = _by_letters(further) | _by_letters(keys)
    places = [key for key in getattr(variant.loaded, "positional", ()) if key in keys]
    presets = presets_of(variant.loaded, keys)
    preset: Mapping[str, Any] = {}
    given: dict[str, str] = {}
    free: dict[str, Any] = {}
    inner = ""  # the option whose value is a specification, and may continue
    for number, part in enumerate(filter(None, map(str.strip, _parts(text)))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        name = by_letters.get(_letters(key)) if equals else None
        if inner and equals and _takes((further | keys)[inner], given[inner], key, name is not None):
            given[inner] += f",{part}"
            continue
        if not equals and number < len(places):
            name, value = places[number], part
        elif not equals and number == 0 and part.lower() in presets:
            preset = presets[part.lower()]
            continue
        if name is None and variant.free:
            option = key.replace("-", "_")
            if not option.isidentifier() or not value or option in free:
                raise PolicyError(f"{shown(part)} of {where} is not an option; write each option once, as name=value")
            free[option] = literal(value)
            continue
        if name is None and not equals and _letters(key) in by_letters:
            raise PolicyError(f"option {key} of {where} has no value; write {key}=VALUE", "missing_value")
        if name is None:
            known = [*keys, *presets, *further]
            words = valid_options(key, known) if known else "; there are no options"
            raise PolicyError(f"unknown option {shown(key)} of {where}{words}", "unknown_option")
        if not value or name in given:
            raise PolicyError(
                f"option {name} of {where} is {'given twice; give it once' if name in given else 'empty; give a value'}", "repeated_option"
            )
        given[name] = value
        inner = name if ":" in value else ""
    lacking = [key for key, one in keys.items() if one.needed and key not in given and one.field not in preset]
    if lacking:
        raise PolicyError(f"option {lacking[0]} of {where} is missing; add it: {describe_value(keys[lacking[0]])}", "missing_option")

    def values(some: Mapping[str, DeclaredField]) -> dict[str, Any]:
        return {one.field: read_value(one, key, given[key], where) for key, one in some.items() if key in given}

    return {**preset, **values(keys), **free}, values(further)


def _parts(text: str) -> list[str]:
    """Split a text at its commas; commas within parentheses are part of a value."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def options_of(kind: type) -> Mapping[str, DeclaredField]:
    """Return the options of a class, by their names in specifications."""
    try:
        declared = keys_of(kind)
    except NameError:  # a class of a user's own, with types that are not there at run time
        declared = {one.name: DeclaredField(one.name, Any, Field(), one.default) for one in fields(kind) if one.init}
    return {name.replace("_", getattr(kind, "separator", "-")): one for name, one in declared.items()}


def name_of(thing: Specification) -> tuple[str, Mapping[str, Any]]:
    """Return the name of an object in its family, and the options that it implies; of several names, the one that implies the most."""
    family = next((FAMILIES[base] for base in type(thing).__mro__ if base in FAMILIES), None)
    variants = {} if family is None else family.variants
    fitting = [(name, {**variant.implied, **variant.start}) for name, variant in variants.items() if variant.makes(thing)]
    return max(fitting, key=lambda one: len(one[1]), default=(thing.unlisted, {}))


def module_map(family: Family[Any]) -> dict[str, tuple[str, ...]]:
    """Return the modules of a family's classes, without the package, with their classes, in the form that `walltime.lazy` accepts."""
    places = [variant.kind.removeprefix("walltime.").split(":") for variant in family.variants.values() if isinstance(variant.kind, str)]
    return {module: tuple(dict.fromkeys(kind for home, kind in places if home == module)) for module, _ in places}


def presets_of(kind: Any, options: Mapping[str, DeclaredField]) -> dict[str, Mapping[str, Any]]:
    """Return the presets of a class that set only these options."""
    able = {one.field for one in options.values()}
    return {word: values for word, values in getattr(kind, "presets", {}).items() if able.issuperset(values)}


def describe_value(option: DeclaredField) -> str:
    """Describe the valid values of an option, for messages and pages."""
    if option.key.label:
        return option.key.label
    ways = [_called(*_alternative(one, option.key)) for one in alternatives(option.kind)]
    return ", or ".join([" or ".join(ways), *option.key.literals, *(["none"] if option.default is None and "none" not in ways else [])])


def spell(value: Any, option: DeclaredField | None = None) -> str:
    """Return a value as specifications write it."""
    instead = {} if option is None else option.key.literals
    if option is not None and option.key.write is not None and value is not None:
        return option.key.write(value)
    if value is None or value in instead.values():
        return next((word for word, meant in instead.items() if meant == value), "none")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "/".join("x".join(map(spell, one)) if isinstance(one, tuple) else spell(one) for one in value)
    return repr(float(value)).removesuffix(".0") if isinstance(value, float) else str(value)


def complete(family: Family[Any], text: str, more: Mapping[str, DeclaredField] | None = None) -> list[str]:
    """Return shell completions of a text, as complete texts: names, then options, then their values.

    Suggested values are those of a Literal, yes and no, names of other families, and the default. If only one option is left, its values
    are suggested at once, because a shell would insert a space after it. `more`: additional options, as in `Family.read`.
    """
    name, colon, rest = text.partition(":")
    if not colon:
        return [known for known in family.variants if known.startswith(name.lower())]
    try:
        variant = family.variant(name)[0]
    except WalltimeError:
        return []
    keys = {**variant.keys, **(more or {})}
    *whole, last = _parts(rest)
    before, comma = ",".join(whole), "," if whole else ""
    begin = f"{name}:{before}{comma}"
    key, equals, value = last.partition("=")
    if equals:
        return [f"{begin}{key}={word}" for word in _words(keys[key]) if word.startswith(value)] if key in keys else []
    presets = [] if before else [f"{begin}{word}" for word in presets_of(variant.loaded, keys) if word.startswith(key)]
    bare = [part for part in whole if part and "=" not in part]  # options that came first, without their names
    given = {part.partition("=")[0] for part in whole}.union(getattr(variant.loaded, "positional", ())[: len(bare)])
    left = [known for known in keys if known.startswith(key) and known not in given]
    words = [f"{begin}{left[0]}={word}" for word in _words(keys[left[0]])] if len(left) == 1 and not presets else []
    return [*presets, *(f"{begin}{known}=" for known in left), *words]


def _words(option: DeclaredField) -> list[str]:
    """Return the values to suggest for an option."""
    words: list[str] = [] if option.default is MISSING else [spell(option.default, option)]
    for one in alternatives(option.kind):
        inner, key = _alternative(one, option.key)
        words += FAMILIES[inner].variants if inner in FAMILIES else ("yes", "no") if inner is bool else (*key.known, *key.literals)
    return list(dict.fromkeys(words))


def _in_order(parts: list[tuple[str, DeclaredField, str]]) -> list[str]:
    """Return options as `key=value`; a value to which the following option could also belong comes last."""

    def takes_next(number: int) -> bool:
        _, option, text = parts[number]
        return ":" in text and any(_takes(option, text, key, True) for key, _, _ in parts[number + 1 :])

    places = sorted(range(len(parts)), key=takes_next)
    return [f"{parts[place][0]}={parts[place][2]}" for place in places]


def _takes(option: DeclaredField, text: str, key: str, elsewhere: bool) -> bool:
    """Return whether the specification in an option's value has an option of this name; `elsewhere`: the outer specification has one."""
    family = next((FAMILIES[kind] for kind in alternatives(option.kind) if kind in FAMILIES), None)
    if family is None:
        return False
    variant, _ = family.variant(text)
    return _letters(key) in _by_letters(variant.keys) or (variant.free and not elsewhere)


def _by_letters(keys: Mapping[str, DeclaredField]) -> dict[str, str]:
    """Return the names of options by the letters of their present and former names."""
    return {_letters(name): key for key, one in keys.items() for name in (key, *one.key.former)}


def _letters(key: str) -> str:
    """Return an option's name without separators, so that `bf_max_job_test` and `bf-max-job-test` are equal."""
    return key.strip().lower().replace("-", "").replace("_", "")


def _alternative(kind: Any, key: Field) -> tuple[Any, Field]:
    """Return one of the types of an option, and the Field that applies to it."""
    inner, own = unwrapped(kind)
    return inner, own if own.known else key


def _called(kind: Any, key: Field) -> str:
    if kind in FAMILIES:
        title = FAMILIES[kind].title
        return f"{'an' if title[0] in 'aeiou' else 'a'} {title} such as {next(iter(FAMILIES[kind].variants))}"
    if kind is bool:
        return "yes or no"
    return "numbers such as 8/64" if get_origin(kind) is tuple else described(kind if kind in KINDS else Any, key)


def read_value(option: DeclaredField, key: str, text: str, where: str) -> Any:
    """Return the value of an option from its text; raises PolicyError with `key` and `where` in its message."""
    if text.lower() in option.key.literals:
        return option.key.literals[text.lower()]
    if text.lower() == "none" and option.default is None:
        return None
    if option.key.read is not None:
        try:
            return option.key.read(text)
        except WalltimeError as error:
            raise PolicyError(f"option {key} of {where} {error}", "wrong_value") from error
    for one in alternatives(option.kind):
        value = _typed(*_alternative(one, option.key), text)
        if value is not None and _fits(option, value):
            return value
    raise PolicyError(f"option {key} of {where} must be {describe_value(option)}, not {shown(text)}", "wrong_value")


def literal(text: str) -> Any:
    """Return the value of a text without a declared type: a bool, a number or the text itself."""
    if text in ("yes", "no"):
        return text == "yes"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _typed(kind: Any, key: Field, text: str, between: str = "/") -> Any:
    """Convert a text to a type, None if it is invalid; `between`: the separator of list elements."""
    if kind in FAMILIES:
        return FAMILIES[kind].parse(text)
    if kind is bool:
        return {"yes": True, "no": False}.get(text.lower())
    if get_origin(kind) is tuple:
        values = tuple(_typed(get_args(kind)[0], key, one, "x") for one in text.split(between))
        return None if None in values else values
    if kind is str:
        return next((word for word in key.known if word.lower() == text.lower()), None if key.known else text)
    if kind not in (int, float):
        return literal(text)
    try:
        return kind(text)
    except ValueError:
        return None


def _fits(option: DeclaredField, value: Any) -> bool:
    """Return whether a value is valid for an option."""
    if value is None:
        return option.default is None or None in option.key.literals.values()
    return any(_is_of(*_alternative(one, option.key), value) for one in alternatives(option.kind))


def _is_of(kind: Any, key: Field, value: Any) -> bool:
    """Return whether a value has a type and satisfies its Field."""
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        whole = isinstance(value, tuple) and (inner[-1] is ... or len(inner) == len(value))
        return whole and all(_is_of(inner[0], key, one) for one in value)
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is int:
        return isinstance(value, numbers.Integral) and is_within(int(value), key)
    if kind is float:
        return isinstance(value, numbers.Real) and math.isfinite(value) and is_within(float(value), key)
    try:
        return isinstance(value, kind) and (kind is not str or not key.known or value in key.known)
    except TypeError:
        return True  # a user's type without values to check at run time
