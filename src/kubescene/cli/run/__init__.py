"""``kubescene run``: here, by hand, at a server, beside programs, or with two schedulers."""
