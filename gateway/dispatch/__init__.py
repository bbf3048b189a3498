"""The request path: plan → attempt → commit or move on → record."""
