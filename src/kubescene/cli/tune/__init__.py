"""``kubescene tune``."""
