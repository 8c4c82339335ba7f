"""Changes that are said as patches: the four media types, strategic merge, server-side apply."""
