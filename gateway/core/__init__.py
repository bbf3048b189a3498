"""The vocabulary every other package speaks: types, ports, errors, clock. Imports nothing from gateway."""
