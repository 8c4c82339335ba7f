"""Volumes and claims: who binds, provisions and protects them."""
