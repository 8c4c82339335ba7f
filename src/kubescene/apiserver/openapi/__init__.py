"""OpenAPI v3 and v2 of every kind, built-in and custom. Nothing here speaks HTTP but `pages`."""
