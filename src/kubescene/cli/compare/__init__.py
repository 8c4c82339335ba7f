"""``kubescene compare``."""
