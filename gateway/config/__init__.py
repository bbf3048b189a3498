"""Strict configuration: YAML and environment in, frozen sections out, every mistake named with its line."""
