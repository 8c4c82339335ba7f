"""Traffic objects: requests that real Pods serve, while time passes.

`definition` is the kind, `spec` what it asks for, `pods` who can serve, `serving` the requests of
one object over `kubescene.flows`, `reconciler` the controller.
"""
