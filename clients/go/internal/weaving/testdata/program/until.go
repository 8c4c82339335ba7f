//go:build linux || !linux

// Package main has a loop that is a function literal, under a build constraint.
package main

import (
	"context"
	"fmt"
	"time"
)

func runUntil(ctx context.Context, s settings) {
	ctx, cancel := context.WithCancel(ctx)
	scenario := 0 // a name that is taken
	//kubescene:loop name=ticker config="settings.config(s)"
	UntilWithContext(ctx, func(ctx context.Context) {
		scenario++
		s.trace(fmt.Sprint("tick ", scenario))
		if scenario == 2 {
			cancel()
		}
	}, time.Millisecond)
}
