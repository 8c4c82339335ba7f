"""How a Deployment moves from one pod template to the next.

`deployment` is the controller; the other modules decide, without any effect. `Rollout` is what a
pass looks at, and each of them answers one question about it: how large may sets be, how large
should they be next, which revision is which, what does the status say.
"""
