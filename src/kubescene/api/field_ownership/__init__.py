"""Who owns which field: sets of fields, the shapes they follow, ``metadata.managedFields``."""
