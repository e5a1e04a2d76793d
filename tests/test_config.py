"""Configuration files: every fault is one InputError that names the place as the person wrote it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from cliffwatch.config import MAX_DEPTH, ConfigModel, check_config, load_config, parse_config
from cliffwatch.errors import InputError
from cliffwatch.units import Number, Seconds, TokenCount


class Dog(ConfigModel):
    kind: Literal["dog"]
    age: Annotated[Number, Field(gt=0)]


class Cat(ConfigModel):
    kind: Literal["cat"]
    lives: TokenCount = 9
    nap: Seconds | None = None


Pet = Annotated[Dog | Cat, Field(discriminator="kind")]


class House(ConfigModel):
    name: str = "home"
    pet: Pet | None = None
    pets: Annotated[tuple[Pet, ...], Field(max_length=3)] = ()
    size: Literal["small", "large"] = "small"
    lock: bool = True
    number: int | list[int] = 1


def refusal(text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        parse_config(text, House, source="house.yaml")
    assert caught.value.file == "house.yaml"
    assert str(caught.value).isprintable()
    return caught.value


@pytest.mark.parametrize(
    ("text", "field", "value", "allowed"),
    [
        ("colour: red", "colour", None, "the keys lock, name, number, pet, pets, size"),
        ("pet: {kind: dog, age: -1}", "pet.age", -1, "greater than 0"),
        ("pet: {kind: dog}", "pet.age", None, None),
        ("pet: {kind: cat, lives: 1.5}", "pet.lives", 1.5, "a whole number of tokens"),
        ("pet: {kind: cat, nap: 3 weeks}", "pet.nap", "3 weeks", "250ms"),
        ("pet: {kind: dog, aeg: 3}", "pet.aeg", None, "the keys age, kind"),
        ("pet: {kind: cow}", "pet.kind", "cow", "dog, cat"),
        ("pet: {age: 3}", "pet.kind", None, "dog, cat"),
        ("pet: {kind: }", "pet.kind", None, "dog, cat"),
        ("pet: 7", "pet", 7, "the keys"),
        ("pet: {kind: dog, age: true}", "pet.age", True, "a number"),
        ("pets: [{kind: cat}, {kind: dog, age: 0}]", "pets[1].age", 0, "greater than 0"),
        ("pets: [{kind: cat}, {kind: dog, age: 1, dog: 2}]", "pets[1].dog", None, "the keys age, kind"),
        ("pets: [3]", "pets[0]", 3, "the keys"),
        ("pets: [{kind: cat}, {kind: cat}, {kind: cat}, {kind: cat}]", "pets", ..., "3 at most"),
        ("size: huge", "size", "huge", "'small' or 'large'"),
        ("lock: perhaps", "lock", "perhaps", "a valid boolean"),
        ("name: 7", "name", 7, "text"),
        ("name: [a]", "name", ["a"], "text"),
        ("number: [x]", "number", ["x"], "a valid integer"),
        ("1: 2", "[1]", 1, "the keys"),
        ("'two words': 2", "'two words'", None, "the keys"),
    ],
)
def test_names_field_value_and_what_is_allowed(text: str, field: str, value: object, allowed: str | None) -> None:
    error = refusal(text)
    assert error.field == field
    assert value is ... or error.value == value
    assert (error.allowed is None) == (allowed is None)
    assert (allowed or "") in (error.allowed or "")


def test_counts_the_other_faults() -> None:
    assert "(and 2 more faults)" in str(refusal("size: huge\nname: 7\nlock: perhaps"))
    assert "(and 1 more fault)" in str(refusal("size: huge\nname: 7"))


def test_a_misspelt_key_is_named_rather_than_the_missing_one() -> None:
    assert refusal("pet: {kind: dog, aeg: 3}").message == "unknown key (and 1 more fault)"


@pytest.mark.parametrize("text", ["", "# nothing", "~", "- 1", "7", "hello"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    error = refusal(text)
    assert error.message == "must be a mapping of keys to values"
    assert "the keys" in str(error.allowed)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("name: a\nlock: true\nname: b", "line 3, column 1", "'name' stands twice"),
        ("pet:\n  kind: dog\n  kind: cat", "line 3, column 3", "'kind' stands twice"),
        ("name: [", "line 1", "parsing"),
        ("name:\t- x\n\ty", "line 1", "token"),
        ("name: a\n---\nname: b", "line 2, column 1", "another document"),
        ("name: a\nlock: \0", "line 2", "character"),
        ("name: !!python/object:os.system x", "line 1, column 7", "could not determine a constructor"),
        ("? [a, b]\n: c", "line 1, column 3", "unhashable"),
        ("name: *nobody", "line 1, column 7", "undefined alias"),
        ("pets: &a [*a]", "line 1, column 11", "an alias inside of what it names"),
    ],
)
def test_yaml_faults_name_the_line(text: str, line: str, says: str) -> None:
    error = refusal(text)
    assert str(error.field).startswith(line)
    assert says in error.message


@pytest.mark.parametrize("tag", ["bool", "int", "float", "timestamp", "binary", "null", "set", "omap", "pairs"])
@pytest.mark.parametrize("value", ["x", "''", "'%'", "[1]", "9" * 5000])
def test_a_value_against_its_tag_is_no_traceback(tag: str, value: str) -> None:
    try:
        parse_config(f"name: !!{tag} {value}", House, source="house.yaml")
    except InputError as error:
        assert error.file == "house.yaml"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("off", "off"),
        ("no", "no"),
        ("1:30", "1:30"),
        ("2026-12-02", "2026-12-02"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("'7'", "7"),
    ],
)
def test_scalars_are_read_as_yaml_1_2_reads_them(text: str, name: str) -> None:
    assert parse_config(f"name: {text}", House, source="x").name == name


def test_a_leading_zero_is_no_octal() -> None:
    assert parse_config("number: 010", House, source="x").number == 10
    assert parse_config("number: [-08, +7]", House, source="x").number == [-8, 7]


def test_merge_keys_and_aliases_work() -> None:
    text = "pet: &cat {kind: cat, lives: 1k}\npets:\n  - *cat\n  - {<<: *cat, nap: 2m}"
    house = parse_config(text, House, source="x")
    assert house.pets == (Cat(kind="cat", lives=1024), Cat(kind="cat", lives=1024, nap=120))


BOMB_LINES = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 10)]
MERGE_LINES = [f"a{level}: &a{level}\n  <<: [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 10)]
CHAIN_LINES = [f"a{level}: &a{level} [*a{level - 1}]" for level in range(1, 5000)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n".join(["a0: &a0 [x, x]", *BOMB_LINES]), "more than 100000 values"),
        ("\n".join(["a0: &a0 {x: 1}", *MERGE_LINES]), "more than 100000 values"),
        ("\n".join(["a0: &a0 [x]", *CHAIN_LINES]), "deep"),
        ("a: [" + "1," * 200_000 + "]", "more than 100000 values"),
        ("[" * 500_000, "deep"),
        ("{a: " * 200_000, "deep"),
        ("- " * 200_000, "deep"),
        ("\n".join(" " * depth + "a:" for depth in range(500)), "deep"),
    ],
)
def test_a_document_that_unfolds_too_far_is_refused_at_once(text: str, says: str) -> None:
    began = time.perf_counter()
    assert says in refusal(text).message
    assert time.perf_counter() - began < 20


def test_depth_is_allowed_up_to_the_bound() -> None:
    deep = "[" * (MAX_DEPTH - 3) + "]" * (MAX_DEPTH - 3)
    assert refusal(f"name: {deep}").field == "name"


def test_files_that_cannot_be_configuration(tmp_path: Path) -> None:
    def of(path: Path) -> InputError:
        with pytest.raises(InputError) as caught:
            load_config(path, House)
        assert caught.value.file == str(path)
        return caught.value

    assert "cannot be read: No such file" in str(of(tmp_path / "none.yaml"))
    assert "cannot be read: Is a directory" in str(of(tmp_path))
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as stream:
        stream.truncate(50 << 20)
    assert of(huge).allowed == "1 MiB at most"
    for name, data in {"latin": b"name: caf\xe9", "utf16": "name: a".encode("utf-16"), "half": b"name: \xc3"}.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert "is not UTF-8 (byte" in str(of(path))


def test_a_byte_order_mark_and_windows_line_ends_are_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "house.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: caf\xc3\xa9\r\nlock: false\r\n")
    assert load_config(path, House) == House(name="café", lock=False)


def test_a_lone_surrogate_is_refused() -> None:
    assert refusal(r'name: "\ud800"').field == "line 1, column 7"


def test_mappings_from_elsewhere_are_checked_alike() -> None:
    assert check_config({"name": "x"}, House, source="options") == House(name="x")
    with pytest.raises(InputError, match=r"options: pet\.age: is missing"):
        check_config({"pet": {"kind": "dog"}}, House, source="options")


KEYS = ["name", "pet", "pets", "kind", "age", "lives", "nap", "dog", "cat", "size", "number", "<<"]


@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(KEYS),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
        max_leaves=12,
    )
)
def test_any_data_is_read_or_refused(data: object) -> None:
    try:
        parse_config(yaml.safe_dump(data, allow_unicode=True), House, source="house.yaml")
    except InputError as error:
        assert str(error).startswith("house.yaml: ")


@given(text=st.text(alphabet="ab:-[]{}&*!<>|'\"#,?% \n\t0", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_config(text, House, source="house.yaml")
    except InputError as error:
        assert str(error).startswith("house.yaml: ")
