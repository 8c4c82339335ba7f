"""Attempts at whole pod groups: all waiting pods of a group in one cycle."""
