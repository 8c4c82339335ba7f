"""``python -m kubescene``."""

from kubescene.cli import main

main()
