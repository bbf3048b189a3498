"""The gateway stops while requests run: each is told, and each has its record."""

import logging

import pytest

from tests.dispatch.test_client_leaves import Client, last_record
from tests.live import fast, live, run


@pytest.mark.parametrize(("tokens_first", "stream"), [(True, True), (False, True), (False, False)])
def test_a_request_that_a_stop_ends_is_told_so_and_recorded(
    tokens_first: bool, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    script = fast(tps=50, output_tokens=5000) if tokens_first else fast(ttft=30)

    async def main() -> None:
        async with live(script) as gw:
            client = await Client.ask(gw, stream=stream)
            await gw.sims[0].until(lambda stats: stats.requests == 1)
            if tokens_first:
                await client.reader.readuntil(b'"content":"')
        rest = await client.reader.read()
        client.writer.close()
        assert b"the gateway is shutting down" in rest
        assert b"[DONE]" not in rest
        assert rest.startswith(b"HTTP/1.1 503 ") is not tokens_first
        assert rest.endswith(b"0\r\n\r\n" if tokens_first else b"}}")
        record = last_record(gw)
        assert (record.outcome, record.error) == ("error", "overloaded")
        # Nobody is to blame: neither the client left nor did the provider fail.
        assert [entry.outcome for entry in record.attempts] == ["cancelled"]

    with caplog.at_level(logging.WARNING, "uvicorn"):
        run(main())
    assert caplog.records == []
