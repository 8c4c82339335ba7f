"""``kubescene what-if``."""
