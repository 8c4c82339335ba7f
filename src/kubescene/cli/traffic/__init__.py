"""``kubescene traffic`` and its commands."""
