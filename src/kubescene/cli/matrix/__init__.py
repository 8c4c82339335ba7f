"""``kubescene matrix``."""
