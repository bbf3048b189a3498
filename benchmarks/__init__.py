"""Benchmarks of the data plane: what the gateway costs per streamed chunk and per request, beside other proxies."""
