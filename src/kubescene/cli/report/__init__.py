"""``kubescene report``."""
