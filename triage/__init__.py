"""Find out why an LLM inference server does not start, and what to change."""

__version__ = "0.1.0"
__all__ = ["__version__"]
