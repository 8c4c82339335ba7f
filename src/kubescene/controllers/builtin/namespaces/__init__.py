"""Namespaces: how they end, and what they are allowed (quotas, and what is used of them)."""
