"""The API of Kubernetes: resources and their verbs, watches, discovery, and pages about the server.

`paths` says which resource a path names, `resources` which verb is asked of it.
"""
