"""``kubescene bench``."""
