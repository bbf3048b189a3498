"""YAML as plain values with lines."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.document import LIMIT_BYTES, MAX_VALUES, Unreadable, parse, plain_scalar, read_text


def refusal(text: str) -> str:
    """How `text` is refused as a whole."""
    with pytest.raises(Unreadable) as raised:
        parse(text)
    return raised.value.problem.render("c.yaml")


def test_values_know_their_lines() -> None:
    document, problems = parse("a: 1\nb:\n  - x\n  - y: 2\n    z: 3\n")
    assert problems == []
    assert document.values == {"a": 1, "b": ("x", {"y": 2, "z": 3})}
    assert document.line(("b", 1, "z")) == 5
    assert document.line(("b", 1, "missing", "deep")) == 4
    assert document.line(("missing",)) == 1


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("yes", "yes"),
        ("off", "off"),
        ("03:00", "03:00"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("010", 10),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("~", None),
        ("", None),
        ("2026-01-01", "2026-01-01"),
        ("9" * 400, "9" * 400),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        ("sha256:00", "sha256:00"),
    ],
)
def test_plain_scalars_mean_what_yaml_1_2_says(written: str, value: object) -> None:
    assert plain_scalar(written) == value
    assert type(plain_scalar(written)) is type(value)


def test_quoted_scalars_are_text() -> None:
    assert parse("a: '1'\nb: \"true\"\nc: !!str 5\n")[0].values == {"a": "1", "b": "true", "c": "5"}


def test_keys_are_always_text() -> None:
    assert parse("4.5: x\ntrue: y\n")[0].values == {"4.5": "x", "true": "y"}


def test_a_duplicate_key_is_named_with_both_lines() -> None:
    document, problems = parse("a: 1\nb:\n  c: 1\n  c: 2\n")
    assert [problem.render("c.yaml") for problem in problems] == [
        "c.yaml:4: b.c: is given twice (first on line 3); keep one"
    ]
    assert document.values["b"] == {"c": 1}


def test_anchors_and_merge_keys_work() -> None:
    text = "base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4}]}\n"
    document, problems = parse(text)
    assert problems == []
    assert document.values["own"] == {"y": 3, "x": 1}
    assert document.values["both"] == {"x": 1, "y": 2, "z": 4}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("# nothing\n", "is empty"),
        ("- a\n", "c.yaml:1: must be a mapping"),
        ("just text\n", "must be a mapping"),
        ("a: 1\nb: [1,\n", "c.yaml:3: is not valid YAML"),
        ("a: b: c\n", "c.yaml:1: is not valid YAML"),
        ("a: 1\n---\nb: 2\n", "c.yaml:2: is not valid YAML: but found another document"),
        ("a: *nope\n", "c.yaml:1: is not valid YAML: found undefined alias"),
        ("a: 1\nb: \x07\n", "c.yaml:2: is not valid YAML: a control character"),
        ("a: " + "[" * 500 + "]" * 500, "nested deeper than 30 levels"),
        ("a: &a [*a]\n", "nested deeper than 30 levels"),
        ("a: &a {<<: *a}\n", "nested deeper than 30 levels"),
    ],
)
def test_what_gives_no_values_is_one_clear_problem(text: str, says: str) -> None:
    assert says in refusal(text)


def test_a_reference_without_quotes_inside_braces_is_explained() -> None:
    assert refusal("a:\n  - {key: ${VAR}}\n").endswith('; inside { } a reference needs quotes: "${VAR}"')


def test_a_syntax_error_does_not_quote_the_file() -> None:
    assert "sk-very-secret" not in refusal("key: *sk-very-secret\n")


def test_an_alias_bomb_is_refused_before_it_goes_off() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert f"more than {MAX_VALUES:,} values" in refusal("\n".join(lines))


@pytest.mark.parametrize("text", ["a: !!python/object:os.system x\n", "a: !!set {b}\n", "a: !secret x\n"])
def test_a_tag_is_a_problem_and_is_never_acted_on(text: str) -> None:
    _, problems = parse(text)
    assert "has a YAML tag" in problems[0].render("c.yaml")


@pytest.mark.parametrize("text", ['a: "\\ud800"\n', 'a: "x\\0y"\n'])
def test_half_a_character_is_a_problem(text: str) -> None:
    document, problems = parse(text)
    assert document.values == {"a": ""}
    assert "no text" in problems[0].text


@pytest.mark.parametrize("text", ["? [a, b]\n: 1\n", "? {a: b}\n: 1\n", '"": 1\n', '"a\\nb": 1\n'])
def test_an_unusable_key_is_a_problem(text: str) -> None:
    document, problems = parse(text)
    assert document.values == {}
    assert "key" in problems[0].text
    assert "\n" not in problems[0].render("c.yaml")


def test_a_missing_file_a_directory_and_odd_bytes_are_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    (tmp_path / "utf16.yaml").write_bytes("a: 1".encode("utf-16"))
    (tmp_path / "huge.yaml").write_bytes(b"#" * (LIMIT_BYTES + 1))
    expected = {
        "none.yaml": "x: does not exist",
        ".": "x: is a directory, not a YAML file",
        "latin.yaml": "x:2: is not UTF-8 text",
        "utf16.yaml": "x:1: is not UTF-8 text",
        "huge.yaml": "x: is larger than 1 MB; a configuration never is",
        "nul\0.yaml": "x: cannot be read (ValueError)",
    }
    for name, says in expected.items():
        with pytest.raises(Unreadable) as raised:
            read_text(tmp_path / name)
        assert raised.value.problem.render("x") == says


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert parse(read_text(tmp_path / "bom.yaml"))[0].values == {"a": 1}


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=60), st.text("ab:-[]{}&*!|>'\"#%@,?\n \t0", max_size=60)))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        said = [problem.render("c.yaml") for problem in parse(text)[1]]
    except Unreadable as unreadable:
        said = [unreadable.problem.render("c.yaml")]
    assert all(line.isprintable() and line.startswith("c.yaml") for line in said)
