"""What kube-apiserver writes into its audit log: who asked for what, and what came of it.

`policy` says which requests are told and how much of each, `trail` makes events of them, `log` is
the file. A server without an audit log has none of it.
"""

from kubescene.apiserver.audit.log import AuditLog
from kubescene.apiserver.audit.policy import METADATA_OF_ALL, AuditPolicy, read_policy
from kubescene.apiserver.audit.trail import NOBODY, AuditTrail

__all__ = ["METADATA_OF_ALL", "NOBODY", "AuditLog", "AuditPolicy", "AuditTrail", "read_policy"]
