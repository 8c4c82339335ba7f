"""The version of Kubescene, written into every result."""

__version__ = "0.1.0"
