"""CEL rules of custom kinds: what a definition may say (`definitions`), and whether objects keep to
it (`asking`)."""
