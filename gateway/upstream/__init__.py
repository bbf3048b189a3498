"""The only owner of upstream sockets: connections, pools, timeouts, HTTP/1.1 exchanges and SSE framing."""
