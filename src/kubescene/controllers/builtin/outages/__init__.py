"""Outages: things that go wrong for a while or for good, as objects.

`definition` is the kind, `spec` says what is right, `effects` are what each of them writes and
takes back, `reconciler` is when.
"""
