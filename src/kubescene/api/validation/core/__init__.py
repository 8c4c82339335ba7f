"""Rules of the core group but for pods: namespaces, nodes, services, quotas, volumes, claims."""
