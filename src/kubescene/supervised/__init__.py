"""Programs that Kubescene starts: their output is read, their last words kept, their end seen to.

Autoscaler plugins and controllers outside are such programs.
"""
