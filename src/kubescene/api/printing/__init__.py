"""How objects look as rows of a table: what ``kubectl get`` shows, printed by the server.

One module for each family of kinds. A row is a pure function of an object and the present
instant, and holds the cells of all columns, the wide ones too: the client leaves those out.
The cells are those of kube-apiserver v1.36.
"""
