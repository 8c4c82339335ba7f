"""What namespaces are allowed: quotas, and what is used of them."""
