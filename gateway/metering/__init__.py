"""Measuring: the meter of one attempt, how far a sample can be trusted, and the statistics per deployment."""
