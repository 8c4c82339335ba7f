"""A real kube-apiserver as the world of a Scenario.

`mirror` keeps a copy of everything that the server holds; `registry` sends every write there and
waits until the copy shows it, so that controllers, crank and engine work as in an embedded world.
`cluster` puts both together, `wiping` says what a new scenario takes away, `scenarios` is the
Scenario object there, `webhook` keeps others from writing, `player` is the loop of ``kubescene
controller``.
"""
