"""docs/api.md names every path there is, and no other; its examples hold every field."""

import json
import re
from pathlib import Path

from gateway.api.application import METRICS_PATH, MODEL_ROUTES, ROUTES
from tests.api.documented import documented, further

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^#+ (.*)$", re.MULTILINE)


def test_the_table_lists_every_route_and_no_other() -> None:
    table = TEXT.partition("\n\nA key is sent")[0]
    listed = set(re.findall(r"`(GET|POST) (/[^`]*)`", table))
    known = {(route.method, path) for path, route in (ROUTES | MODEL_ROUTES).items()}
    assert listed == known | {("GET", METRICS_PATH)}


def test_every_path_has_an_example() -> None:
    examples = " ".join(re.findall(r"^curl .*$", TEXT, re.MULTILINE))
    for path in (*ROUTES, METRICS_PATH):
        if path != "/health":  # the same as /healthz
            assert f"127.0.0.1:8080{path}" in examples
    assert re.search(r"/v1/models/\w+ ?$|/v1/models/\w+ ", examples)
    assert re.search(r"/v1/models/\w+/endpoints", examples)


def test_the_example_of_a_record_is_whole() -> None:
    example = json.loads(TEXT.partition("## GET /v1/generation")[2].partition("```json\n")[2].partition("```")[0])
    beyond = {name.rpartition(".")[2] for name in further(example, documented("generation"))}
    assert beyond == {"provider", "model", "pool_wait_ms", "connect_ms"}
    assert further(documented("generation"), example) == set()


def test_every_field_of_the_speed_report_is_explained() -> None:
    explained = TEXT.partition("## GET /v1/speed")[2].partition("| field | what |")[2].partition("\n\n")[0]
    (entry,) = documented("speed")["deployments"]
    for name in {*entry, *entry["windows"]["5m"]} - {"id", "provider", "model", "windows"}:
        assert re.search(rf"[`.]{name}`", explained), name
