"""An upstream's words about a request never carry the gateway's own secrets, wherever they stand."""

from dataclasses import replace

import pytest

from gateway.core.reading import WireError
from gateway.core.types import Credential, Provider
from gateway.dispatch.attempt import scrubbed
from gateway.simulator.faults import Status
from tests.live import fast, live, run

KEY, TOKEN = "sk-of-the-gateway", "token-of-the-team"
PROVIDER = Provider(
    name="p",
    base_url="http://127.0.0.1:9/v1",
    credential=Credential("fixed", value=f"Bearer {KEY}"),
    headers=(("X-Team", TOKEN),),
)


@pytest.mark.parametrize("secret", [KEY, TOKEN])
def test_message_param_and_code_are_scrubbed(secret: str) -> None:
    wire = scrubbed(WireError("bad_request", f"bad {secret}!", f"{secret}[0]", f"no_{secret}"), PROVIDER)
    assert (wire.message, wire.param, wire.wire_code) == ("bad [key]!", "[key][0]", "no_[key]")


def test_what_holds_no_secret_and_what_is_missing_stays_as_it_is() -> None:
    for wire in (WireError("bad_request"), WireError("bad_request", "no", "messages", 1210)):
        assert scrubbed(replace(wire), PROVIDER) == wire
    plain = WireError("bad_request", f"bad {KEY}", None, None)
    assert scrubbed(replace(plain), replace(PROVIDER, credential=Credential(), headers=())) == plain


def test_the_client_is_not_shown_a_code_with_the_key_in_it() -> None:
    async def main() -> None:
        fault = Status(code=400, message="no", error_code=f"unknown_{KEY}")
        async with live(fast(faults=(fault,)), provider={"credential": PROVIDER.credential}) as gw:
            response = await gw.post()
            assert KEY not in response.text
            assert response.json()["error"]["code"] == "unknown_[key]"

    run(main())
