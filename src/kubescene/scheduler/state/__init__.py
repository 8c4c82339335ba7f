"""What a scheduler knows: nodes in columns, pods and what they have in common, nominations.

Follows what it is told; asks no plugin and decides nothing.
"""
