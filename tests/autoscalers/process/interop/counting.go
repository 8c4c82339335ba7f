package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"google.golang.org/grpc"
)

// counting wants one pod more than there are, and pods as large as the last cpu stat.
type counting struct {
	lock sync.Mutex
	runs map[string]*run
}

type run struct {
	pods map[string]bool
	cpu  int64
}

func newCounting() *counting { return &counting{runs: map[string]*run{}} }

func (c *counting) of(request message) (*run, error) {
	found := c.runs[request.text("partition")]
	if found == nil {
		return nil, errors.New("non-existent autoscaler partition: " + request.text("partition"))
	}
	return found, nil
}

func (c *counting) event(request message) (message, error) {
	kind := request.Get(request.field("type")).Enum()
	if request.has("autoscaler") {
		return made("Empty"), c.begin(request, kind == 2)
	}
	found, err := c.of(request)
	if err != nil {
		return message{}, err
	}
	if kind == 2 {
		delete(found.pods, request.inner("pod").text("name"))
	} else {
		found.pods[request.inner("pod").text("name")] = true
	}
	return made("Empty"), nil
}

func (c *counting) begin(request message, end bool) error {
	partition := request.text("partition")
	if end {
		delete(c.runs, partition)
		return nil
	}
	yaml := request.inner("autoscaler").text("yaml")
	if strings.Contains(yaml, "refuse") {
		return errors.New("this object is refused")
	}
	if strings.Contains(yaml, "chatter") {
		// More than a pipe holds: whoever does not read StreamStdio stops us for good.
		for i := range 4000 {
			fmt.Println("a line of the plugin that somebody has to read, number", i)
		}
		fmt.Fprintln(os.Stderr, "enough said")
	}
	if strings.Contains(yaml, "crash") {
		panic("a crash in Go")
	}
	c.runs[partition] = &run{pods: map[string]bool{}}
	return nil
}

func (c *counting) stat(request message) (message, error) {
	found, err := c.of(request)
	if err != nil {
		return message{}, err
	}
	for _, each := range request.each("stat") {
		if each.Get(each.field("type")).Enum() == 0 {
			found.cpu = each.number("value")
		}
	}
	return made("Empty"), nil
}

func (c *counting) horizontal(request message) (message, error) {
	found, err := c.of(request)
	if err != nil {
		return message{}, err
	}
	return made("HorizontalRecommendationResponse").with("rec", int32(len(found.pods)+1)), nil
}

func (c *counting) scale(request message) (message, error) {
	found, err := c.of(request)
	if err != nil {
		return message{}, err
	}
	return made("ScaleResponse").with("rec", int32(len(found.pods)+1)), nil
}

func (c *counting) vertical(request message) (message, error) {
	found, err := c.of(request)
	if err != nil {
		return message{}, err
	}
	size := made("RecommendedPodResources").with("lower_bound", found.cpu/2).
		with("upper_bound", found.cpu*2).with("target", found.cpu).with("resource_name", "cpu")
	return made("VerticalRecommendationResponse").with("rec", []message{size}), nil
}

func capabilities(message) (message, error) {
	return made("GetCapabilitiesResponse").with("rec", []int32{0, 1, 2, 3}), nil
}

func pluginType(message) (message, error) {
	return made("PluginTypeResponse").with("rec", "counting.example.com"), nil
}

type asked func(*counting, message) (message, error)

func method(name string, request string, answer asked) grpc.MethodDesc {
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			got := made(request)
			if err := decode(got); err != nil {
				return nil, err
			}
			all := srv.(*counting)
			all.lock.Lock()
			defer all.lock.Unlock()
			said, err := answer(all, got)
			if err != nil {
				return nil, err
			}
			return said, nil
		},
	}
}

var both = []grpc.MethodDesc{
	method("Event", "EventRequest", (*counting).event),
	method("Stat", "StatRequest", (*counting).stat),
}

var modern = &grpc.ServiceDesc{
	ServiceName: "proto.Plugin",
	HandlerType: (*any)(nil),
	Methods: append([]grpc.MethodDesc{
		method("HorizontalRecommendation", "HorizontalRecommendationRequest", (*counting).horizontal),
		method("VerticalRecommendation", "VerticalRecommendationRequest", (*counting).vertical),
		method("GetCapabilities", "Empty", func(_ *counting, m message) (message, error) { return capabilities(m) }),
		method("PluginType", "Empty", func(_ *counting, m message) (message, error) { return pluginType(m) }),
	}, both...),
}

var legacy = &grpc.ServiceDesc{
	ServiceName: "proto.Plugin",
	HandlerType: (*any)(nil),
	Methods:     append([]grpc.MethodDesc{method("Scale", "ScaleRequest", (*counting).scale)}, both...),
}
