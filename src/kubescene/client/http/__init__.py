"""A client of any Kubernetes API server, made of the standard library's sockets.

Everything happens on the caller's thread: requests wait for their answers, watches are read when
`HttpClient.pump` is called. There is no thread, no loop and nothing to lock.
"""

from kubescene.client.http.client import HttpClient
from kubescene.client.http.endpoints import Endpoint
from kubescene.client.http.kubeconfigs import read_kubeconfig

__all__ = ["Endpoint", "HttpClient", "read_kubeconfig"]
