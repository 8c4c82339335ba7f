"""What plugins are, and what they are given: the manual (`interfaces`), and those who ask them.

`runtime` makes the plugins of a profile and knows who stands at which extension point. Nothing in
here decides about a pod.
"""
