// A controller in the manner of those in kube-controller-manager: workers, a queue, a syncHandler that tests
// may replace.
package main

import (
	"context"
	"fmt"
	"time"

	"kubescene.dev/clients/go/scenario"
)

type ReplicaSetController struct {
	settings
	queue       *queue
	syncHandler func(ctx context.Context, rsKey string) error
}

func NewReplicaSetController(s settings, keys ...string) *ReplicaSetController {
	rsc := &ReplicaSetController{settings: s, queue: &queue{s, keys}}
	rsc.syncHandler = rsc.syncReplicaSet
	return rsc
}

// Run works until the context ends.
func (rsc *ReplicaSetController) Run(ctx context.Context) {
	UntilWithContext(ctx, rsc.worker, time.Millisecond)
}

// worker empties the queue.
func (rsc *ReplicaSetController) worker(ctx context.Context) {
	for rsc.processNextWorkItem(ctx) {
	}
}

// processNextWorkItem is one loop; false is the end of all.
//
//kubescene:loop name=replicaset-controller config=rsc.simulator
func (rsc *ReplicaSetController) processNextWorkItem(ctx context.Context) bool {
	key, quit := rsc.queue.Get() // blocks until there is one
	if quit {
		return false
	}
	defer rsc.queue.Done(key) // after which it may be queued again

	if err := rsc.syncHandler(ctx, key); err != nil {
		rsc.queue.AddRateLimited(key)
		return true
	}
	rsc.queue.Forget(key)
	return true
}

func (rsc *ReplicaSetController) syncReplicaSet(_ context.Context, key string) (err error) {
	start := time.Now()
	defer func() {
		err = fmt.Errorf("synced %s in %s", key, time.Since(start))
	}()
	rsc.trace("sync " + key)
	return nil
}

var _ = scenario.GateNextPod
