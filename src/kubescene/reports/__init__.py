"""Showing results to people, one module per medium."""
