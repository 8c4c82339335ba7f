"""A run by virtual time: workloads from beginning to end, and series of what the cluster was.

`following` reads what workloads say of themselves while the ledger is made, `instants` keeps what
the cluster was whenever time went on; `workloads`, `series` and `scaling` make rows of them.
"""
