"""What is shown in a browser: modules, styles and one page, no framework and no build.

``static/shared`` has what every page uses (elements out of text, theme, colours, heat map,
decisions), ``static/report`` the pages that are one file, ``static/app`` those of a server: each is
a module in ``pages``, the others are what they share. They are plain ES modules. A server sends
them as they are; a page that is one file holds them as one script (`bundling`). Nothing here is
fetched from elsewhere, and no text becomes HTML.
"""
