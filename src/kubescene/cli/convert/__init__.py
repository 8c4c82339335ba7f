"""``kubescene convert``."""
