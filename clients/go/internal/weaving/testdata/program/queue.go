package main

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"kubescene.dev/clients/go/scenario"
)

// settings is what every controller of this program is given.
type settings struct {
	server    string
	simulator *scenario.Config
}

// trace tells the server what happens, so that it stands in one order with what is parked.
func (s settings) trace(what string) {
	response, err := http.Get(s.server + "/trace?what=" + url.QueryEscape(what))
	if err != nil {
		panic(err)
	}
	response.Body.Close()
}

// queue stands in for a work queue: keys in order, and then the end.
type queue struct {
	settings
	keys []string
}

func (q *queue) Get() (key string, shutdown bool) {
	if len(q.keys) == 0 {
		return "", true
	}
	key, q.keys = q.keys[0], q.keys[1:]
	return key, false
}

func (q *queue) Done(key string) { q.trace("done " + key) }

func (q *queue) Forget(string) {}

func (q *queue) AddRateLimited(string) {}

// UntilWithContext stands in for the function of that name in the package wait.
func UntilWithContext(ctx context.Context, f func(context.Context), period time.Duration) {
	for ctx.Err() == nil {
		f(ctx)
		time.Sleep(period)
	}
}
