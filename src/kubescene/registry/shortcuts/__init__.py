"""What makes writes faster and nothing else: alike writes are worked out once.

The verbs in `kubescene.registry.registry` are the rule; a world without shortcuts is the same, byte
for byte.
"""
