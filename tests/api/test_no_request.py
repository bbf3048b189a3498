"""What is no HTTP request, or too large a head: OpenAI's error body all the same."""

import asyncio
import json

import pytest

from tests.live import fast, live, run

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "invalid_http"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "invalid_http"),
        (b"GET /healthz HTTP/9.9\r\nhost: localhost\r\n\r\n", 400, "invalid_http"),
        (b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n", 400, "invalid_http"),
        (HEAD + b"content-length: x\r\n\r\n", 400, "invalid_http"),
        (HEAD + b"x-a: " + b"y" * 70_000 + b"\r\n\r\n", 431, "head_too_large"),
    ],
    ids=["words", "tls", "version", "connect", "length", "large"],
)
def test_it_is_answered_with_openais_error_body(data: bytes, status: int, code: str) -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            reader, writer = await asyncio.open_connection("127.0.0.1", gw.port)
            writer.write(data)
            async with asyncio.timeout(5):
                answer = await reader.read()
            head, _, body = answer.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            fields = dict(line.split(": ", 1) for line in lines[1:])
            assert lines[0].startswith(f"HTTP/1.1 {status} ")
            assert (fields["content-type"], fields["connection"]) == ("application/json", "close")
            assert int(fields["content-length"]) == len(body)
            assert fields["x-request-id"].startswith("gen-")
            error = json.loads(body)["error"]
            assert set(error) == {"message", "type", "param", "code"}
            assert (error["type"], error["code"]) == ("invalid_request_error", code)
            writer.close()
            assert (await gw.post()).status_code == 200

    run(main())
