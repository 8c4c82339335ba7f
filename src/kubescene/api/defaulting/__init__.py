"""What the API server fills in before an object is stored, one module per family of kinds.

Each module offers functions from object to object. They never touch their input: a function
returns the very object it was given when there is nothing to fill in, and otherwise a copy that
shares every unchanged part. Inputs are taken to be of the right shape, as they are after
decoding: a wrong type is a matter for schema validation, which runs first.

The entry point is `kubescene.api.defaults.apply_defaults`.
"""
