"""Configuration files: YAML read safely, checked by a pydantic model, refused with file, field, value, allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from cliffwatch.errors import InputError

MAX_CONFIG_BYTES = 1 << 20
MAX_ALIASES = 100

Model = TypeVar("Model", bound=BaseModel)


class ConfigModel(BaseModel):
    """Base of everything read from a file: unknown keys are errors, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses duplicate keys and more than `MAX_ALIASES` aliases (a "YAML bomb")."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            self._aliases += 1
            if self._aliases > MAX_ALIASES:
                raise yaml.MarkedYAMLError(problem=f"more than {MAX_ALIASES} aliases")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} stands twice", problem_mark=key.start_mark)
            if isinstance(key.value, str):
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


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
    try:
        data = yaml.load(text, Loader=_Loader)  # noqa: S506  a SafeLoader subclass
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else None
        raise InputError(f"is not valid YAML: {error.problem or error}", file=source, field=place) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"is not valid YAML: {error}", file=source) from error
    if not isinstance(data, dict):
        raise InputError("must be a mapping of keys to values", file=source, value=data, allowed=_keys(model))
    return check_config(data, model, source=source)


def check_config(data: dict[str, Any], model: type[Model], *, source: str) -> Model:
    """Validate a mapping by `model`; the first fault becomes an InputError, the others are counted in it."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first, *others = error.errors(include_url=False)
        message = first["msg"].removeprefix("Value error, ").rstrip(".")
        if others:
            message += f" (and {len(others)} more faults)"
        unknown = first["type"] == "extra_forbidden"
        raise InputError(
            "unknown key" if unknown else message,
            file=source,
            field=".".join(str(part) for part in first["loc"]) or None,
            value=None if unknown else first["input"],
            allowed=_keys(_model_at(model, first["loc"][:-1])) if unknown else None,
        ) from error


def _keys(model: type[BaseModel]) -> str:
    return "the keys " + ", ".join(sorted(field.alias or name for name, field in model.model_fields.items()))


def _model_at(model: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel]:
    """The nested model that a pydantic error location points at, or the outer one where it cannot be told."""
    current = model
    for part in location:
        found = _models_in(current.model_fields[str(part)].annotation) if str(part) in current.model_fields else []
        tagged = [item for item in _models_in(model) if item.__name__ == part]
        if len(found) == 1:
            current = found[0]
        elif tagged:
            current = tagged[0]
    return current


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
