module kubescene.dev/tests/loop

go 1.24

require kubescene.dev/clients/go v0.0.0

replace kubescene.dev/clients/go => ../../../../clients/go
