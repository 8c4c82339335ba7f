// Command program runs each of its controllers against the server that it is given.
package main

import (
	"context"
	"os"

	"kubescene.dev/clients/go/scenario"
)

func (s settings) config() *scenario.Config { return s.simulator }

func main() {
	ctx := context.Background()
	s := settings{os.Args[1], &scenario.Config{Host: os.Args[1]}}
	NewReplicaSetController(s, "default/a", "default/b").worker(ctx)
	reconciler := &Reconciler{s}
	for _, name := range []string{"web", "missing"} {
		_, _ = reconciler.Reconcile(ctx, Request{Namespace: "default", Name: name})
	}
	runUntil(ctx, s)
}
