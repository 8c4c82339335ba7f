"""The world over HTTP, as kube-apiserver v1.36 would serve it.

Everything that knows of HTTP, sockets and asyncio lives here and nowhere else. What a request means
(defaulting, admission, validation, storage) is the registry's; this package reads requests, hands
writes to the engine thread, serves reads from immutable records, and writes replies.

A request goes through `app` (who asks, and for which row of the `table`), then for an object of
Kubernetes through `kubernetes.resources` to `listing`, `watches`, `writes` or `subresources`, and
out through `rendering` and `responses`. `server` runs it all.
"""
