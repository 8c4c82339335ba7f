"""Readers: one for each form in which people have their clusters.

A reader says whether a source is of its form, and hands out the objects in it; what becomes of
them is `kubescene.snapshots.gathering`'s. An installed package brings readers of its own by the
entry point ``kubescene.readers``: a class that is made without arguments and is a
`SnapshotReader`.
"""
