module kubescene.dev/clients/go

go 1.24
