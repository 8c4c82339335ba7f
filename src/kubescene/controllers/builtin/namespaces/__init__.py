"""What every namespace has or is allowed: quotas, service accounts and their tokens."""
