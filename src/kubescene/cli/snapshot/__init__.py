"""``kubescene snapshot``."""
