"""``kubescene record``."""
