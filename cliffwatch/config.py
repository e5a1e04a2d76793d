"""Configuration files: YAML read safely, checked by a pydantic model, refused with file, field, value, allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from cliffwatch.errors import InputError, shorten

MAX_CONFIG_BYTES = 1 << 20
MAX_NODES = 100_000  # after every alias is followed: what a "YAML bomb" would unfold to
MAX_DEPTH = 40
MAX_SHOWN = 8  # entries of a list that a refusal repeats

Model = TypeVar("Model", bound=BaseModel)


class ConfigModel(BaseModel):
    """Base of everything read from a file: unknown keys are errors, values are frozen.

    A validator raises ValueError("what is wrong; allowed: what would be right").
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Loader(yaml.SafeLoader):
    """SafeLoader that reads scalars as YAML 1.2 does, and refuses duplicate keys and documents that unfold too far.

    YAML 1.1, which the library speaks, makes 8 of `010`, 90 of `1:30` and false of `off`.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._nodes = self._depth = 0
        self._sizes: dict[int, tuple[int, int]] = {}  # nodes and depth below a composed node, aliases followed

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        self._nodes += 1
        self._depth += 1
        _bound(event, self._nodes, self._depth)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.events.AliasEvent):
            if id(node) not in self._sizes:
                raise _refusal("an alias inside of what it names", event)
        elif node is not None:
            if isinstance(node, yaml.ScalarNode) and _SURROGATE.search(node.value):
                raise _refusal("half a character (a lone surrogate)", node)
            sizes = [self._sizes[id(child)] for child in _children(node)]
            nodes, depth = 1 + sum(size[0] for size in sizes), 1 + max((size[1] for size in sizes), default=0)
            _bound(event, nodes, depth)
            self._sizes[id(node)] = nodes, depth
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise _refusal(f"key {shorten(key.value)} stands twice", key)
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep=deep)


def _bound(event: Any, nodes: int, depth: int) -> None:
    if nodes > MAX_NODES:
        raise _refusal(f"more than {MAX_NODES} values", event)
    if depth > MAX_DEPTH:
        raise _refusal(f"nested more than {MAX_DEPTH} deep", event)


def _refusal(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _construct_int(loader: yaml.SafeLoader, node: Any) -> int:
    return int(str(loader.construct_scalar(node)))


_SURROGATE = re.compile("[\\ud800-\\udfff]")

_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _starts in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", list("-+.")),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})\\Z"), _starts)


def load_config(path: Path, model: type[Model]) -> Model:
    """Read `path` as YAML and check it by `model`.

    Raises:
        InputError: the file is absent, unreadable, over 1 MiB, not UTF-8, not YAML, or not what `model` allows;
            the error names the file, the field (or line), the value found and what is allowed.
    """
    return parse_config(read_config_text(path), model, source=str(path))


def read_config_text(path: Path) -> str:
    """The text of a configuration file, bounded and decoded. Raises InputError."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    if len(data) > MAX_CONFIG_BYTES:
        raise InputError("is larger than a configuration file may be", file=path, allowed="1 MiB at most")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 (byte {error.start})", file=path, allowed="YAML in UTF-8") from error


def parse_config(text: str, model: type[Model], *, source: str) -> Model:
    """Check YAML text by `model`; `source` is the name that errors carry. Raises InputError."""
    data = _read(text, source, lambda: yaml.load(text, Loader=_Loader))  # noqa: S506  a SafeLoader subclass
    if not isinstance(data, dict):
        raise InputError("must be a mapping of keys to values", file=source, value=data, allowed=_keys([model]))
    return check_config(data, model, source=source)


def parse_documents(text: str, *, source: str) -> list[dict[str, Any]]:
    """The mappings of a YAML text of several documents, empty ones left out. Raises InputError."""
    found = _read(text, source, lambda: list(yaml.load_all(text, Loader=_Loader)))
    documents = [one for one in found if one is not None]
    for one in documents:
        if not isinstance(one, dict):
            raise InputError("must be a mapping of keys to values", file=source, value=one)
    return documents


def _read(text: str, source: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else None
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise InputError(f"is not valid YAML: {problem}", file=source, field=place) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"is not valid YAML: character {error.character!r}"
        raise InputError(message, file=source, field=f"line {line}") from error
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # what the library's constructors raise for a tag that its value contradicts, such as `!!bool 7`
        raise InputError("is not valid YAML: a value is not what its tag says, or too long", file=source) from error


def check_config(data: dict[str, Any], model: type[Model], *, source: str) -> Model:
    """Validate a mapping by `model`; the first fault becomes an InputError, the others are counted in it."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        # an unknown key comes first: a key that seems to be missing is often the same one, misspelt
        first, *others = sorted(error.errors(include_url=False), key=lambda fault: fault["type"] != "extra_forbidden")
        field, models = _place(model, data, first["loc"])
        if discriminator := first.get("ctx", {}).get("discriminator"):  # the key that tells which model it is
            field += "." + discriminator.strip("'")
        message, value, allowed = _explain(first, models)
        if others:
            message += f" (and {len(others)} more fault{'s' if len(others) > 1 else ''})"
        raise InputError(
            message, file=source, field=field.removeprefix(".") or None, value=value, allowed=allowed
        ) from error


def _explain(fault: Any, models: list[type[BaseModel]]) -> tuple[str, object, str | None]:
    """What is wrong, the value found and what is allowed, of one pydantic error at a place for `models`."""
    kind, value, context = fault["type"], _shown(fault["input"]), fault.get("ctx", {})
    keys = _keys(models)
    if kind in _WORDS:
        return _WORDS[kind], value, keys
    if kind in _WORDS_WITHOUT_VALUE:
        return _WORDS_WITHOUT_VALUE[kind], None, keys
    if "discriminator" in context:
        key = context["discriminator"].strip("'")
        kinds = ", ".join(str(tag) for model in models for tag in get_args(model.model_fields[key].annotation))
        found = value.get(key) if isinstance(value, dict) else None
        return "is missing" if found is None else "unknown", found, kinds
    if kind in _TYPES:
        return "cannot be used", value, _TYPES[kind]
    if "min_length" in context:
        return "is too short", value, f"{context['min_length']} at least"
    if "max_length" in context:
        return "is too long", value, f"{context['max_length']} at most"
    message, _, allowed = fault["msg"].removeprefix("Value error, ").partition("; allowed: ")
    for opening in ("Input should be ", "must be "):
        if message.startswith(opening):
            return "cannot be used", value, message.removeprefix(opening)
    return message, value, allowed or None


def _shown(value: object) -> object:
    """A long list by its length: its entries would bury what is wrong with it."""
    return f"a list of {len(value)}" if isinstance(value, list | tuple) and len(value) > MAX_SHOWN else value


_WORDS = {
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "invalid_key": "a key must be text, in quotes where it looks like something else",
}
_TYPES = {"tuple_type": "a list", "dict_type": "a mapping of keys to values", "string_type": "text"}
_WORDS_WITHOUT_VALUE = {"missing": "is missing", "extra_forbidden": "unknown key"}


def _place(model: type[BaseModel], data: object, location: tuple[int | str, ...]) -> tuple[str, list[type[BaseModel]]]:
    """Where a pydantic error location is in the file as it was written, and the models that may stand there.

    For an unknown key the models are those of the mapping it stands in. Locations hold labels besides keys, for the
    member of a union that was tried: these are no part of the place, but tell which model it was.
    """
    written, models = "", [model]
    for part in location:
        fields = {field.alias or name: field for one in models for name, field in one.model_fields.items()}
        if isinstance(part, int):
            written += f"[{part}]"
            data = data[part] if isinstance(data, list | tuple) and part < len(data) else None
        elif part in fields or (isinstance(data, dict) and part in data):
            written += f".{part if part.isidentifier() and len(part) < 80 else shorten(part)}"
            data = data.get(part) if isinstance(data, dict) else None
            models = _models_in(fields[part].annotation) if part in fields else models
        else:
            models = [one for one in models if _has_label(one, part)] or models
    return written.removeprefix("."), models


def _has_label(model: type[BaseModel], label: str) -> bool:
    return label == model.__name__ or label in _tags(model)


def _tags(model: type[BaseModel]) -> list[str]:
    """The texts that tell this member of a union from the others."""
    kinds = [field.annotation for field in model.model_fields.values() if get_origin(field.annotation) is Literal]
    return [str(tag) for kind in kinds for tag in get_args(kind)]


def _keys(models: list[type[BaseModel]]) -> str | None:
    names = {field.alias or name for model in models for name, field in model.model_fields.items()}
    return "the keys " + ", ".join(sorted(names)) if names else None


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
