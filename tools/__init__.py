"""The checks behind `make check`, and what pins the requirements."""
