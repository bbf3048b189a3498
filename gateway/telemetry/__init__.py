"""What the gateway tells of itself: metrics in Prometheus' format and the request log. Listeners of the record."""
