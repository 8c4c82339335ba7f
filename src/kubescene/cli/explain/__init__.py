"""``kubescene explain``."""
