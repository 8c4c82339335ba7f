"""Autoscalers in other processes, over gRPC, with the handshake of go-plugin.

`host.ProcessAutoscaler` starts a command and is an autoscaler like any other; `server.serve` is
the other side, for autoscalers in Python. What both say is in ``protos``; `messages` turns it into
the values of `kubescene.autoscalers.interfaces` and back. Needs ``kubescene[processes]``.
"""
