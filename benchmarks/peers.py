"""The proxies that are measured: how each is configured and started, one function each, in the PEERS table."""

import hashlib
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.native_build import BenchmarkError
from benchmarks.processes import free_port, running, wait_until_serving

MODEL = "mock-1"
REPOSITORY = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a peer finds its upstream, and a folder of its own for configuration and logs."""

    upstream_port: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Running:
    """A peer that serves. `pid` None: there is no process in between."""

    port: int
    pid: int | None
    headers: tuple[str, ...] = ()
    model: str = MODEL


Start = Callable[[Setting], AbstractContextManager[Running]]


@contextmanager
def direct(setting: Setting) -> Iterator[Running]:
    """No proxy: the client talks to the mock upstream."""
    yield Running(port=setting.upstream_port, pid=None)


# Unbuffered, with a pool of kept upstream connections: what nginx's own guides advise in front of a streaming API.
_NGINX = """\
{user}worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 16384; }}
worker_rlimit_nofile 20000;
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000;
    upstream mock {{
        server 127.0.0.1:{upstream};
        keepalive 256;
        keepalive_requests 1000000;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://mock;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_read_timeout 600s;
            client_body_buffer_size 64k;
        }}
    }}
}}
"""


@contextmanager
def nginx(setting: Setting) -> Iterator[Running]:
    """nginx `proxy_pass` with one worker."""
    program, port = _nginx_program(), free_port()
    user = "user root;\n" if os.geteuid() == 0 else ""
    config = setting.folder / "nginx.conf"
    config.write_text(_NGINX.format(user=user, folder=setting.folder, upstream=setting.upstream_port, port=port))
    log = setting.folder / "nginx.log"
    with running([program, "-p", str(setting.folder), "-c", str(config), "-e", str(log)], log) as pid:
        wait_until_serving(pid, port, log, path=None)
        yield Running(port=port, pid=pid)


def _nginx_program() -> str:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    if found := shutil.which("nginx", path=path):
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("nginx is missing: apt-get install -y --no-install-recommends nginx-light", file=sys.stderr)
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "nginx-light"],
            stdout=sys.stderr,
            check=False,
        )
        if found := shutil.which("nginx", path=path):
            return found
    raise BenchmarkError(
        "nginx is needed as the yardstick (Debian: apt-get install nginx-light), or leave it out: --peers"
    )


# Everything on: a key to check, routing by model, metering, the request log, metrics, state on disk.
_GATEWAY = """\
version: 1
server:
  host: 127.0.0.1
  port: {port}
  max_streams: 10000
auth:
  keys:
    - {{name: bench, key: "sha256:{digest}"}}
providers:
  mock: {{base_url: "http://127.0.0.1:{upstream}/v1", api_key: mock-key}}
models:
  {model}:
    deployments:
      - {{provider: mock, model: {model}}}
telemetry:
  request_log: {folder}/requests.jsonl
state_dir: {folder}/state
"""


@contextmanager
def gateway(setting: Setting) -> Iterator[Running]:
    """This gateway: `gateway serve` as a user starts it, one process."""
    key, port = "bench-" + secrets.token_hex(16), free_port()
    config = setting.folder / "gateway.yaml"
    config.write_text(
        _GATEWAY.format(
            port=port,
            digest=hashlib.sha256(key.encode()).hexdigest(),
            upstream=setting.upstream_port,
            folder=setting.folder,
            model=MODEL,
        )
    )
    log = setting.folder / "gateway.log"
    environment = {"PYTHONPATH": str(REPOSITORY), "NO_PROXY": "127.0.0.1"}
    with running([sys.executable, "-m", "gateway", "serve", "-c", str(config)], log, environment) as pid:
        wait_until_serving(pid, port, log, path="/readyz")
        yield Running(port=port, pid=pid, headers=(f"Authorization: Bearer {key}",))


PEERS: Mapping[str, Start] = {"direct": direct, "nginx": nginx, "gateway": gateway}
