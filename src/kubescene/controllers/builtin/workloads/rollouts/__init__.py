"""How a Deployment moves from one pod template to the next: decisions, without any effect.

`Rollout` is what a pass looks at. The other modules each answer one question about it: how large
may sets be, how large should they be next, which revision is which, what does the status say.
"""
