"""``kubescene results``."""
