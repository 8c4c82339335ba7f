"""``kubescene validate``."""
