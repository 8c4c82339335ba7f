"""Text that comes in and goes out: JSON and YAML, read within bounds, written to be kept."""
