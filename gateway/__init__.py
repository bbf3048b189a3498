"""An OpenAI-compatible routing proxy with speed metering."""

__version__ = "0.1.0"
