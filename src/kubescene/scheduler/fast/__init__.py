"""What is only faster: the decisions of `cycle`, made of what was kept of earlier ones.

What a class of pods was told is kept per row of the node table; a row that changed is told anew; a
search reads.
"""
