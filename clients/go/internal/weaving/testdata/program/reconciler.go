package main

import "context"

// Request, Result and the shape of Reconcile are those of controller-runtime.
type Request struct{ Namespace, Name string }

type Result struct{ Requeue bool }

type Reconciler struct{ settings }

//kubescene:loop name=my-operator config=r.simulator context=ctx
func (r *Reconciler) Reconcile(ctx context.Context, req Request) (result Result, err error) {
	r.trace("reconcile " + req.Name)
	if req.Name == "missing" {
		return result, context.DeadlineExceeded
	}
	return Result{Requeue: true}, nil
}
