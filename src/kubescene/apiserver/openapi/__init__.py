"""OpenAPI v3 of every group version, built-in and custom. Nothing here speaks HTTP but `pages`."""
