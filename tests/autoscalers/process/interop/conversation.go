package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
)

type caller struct {
	conn *grpc.ClientConn
	err  error
}

// call asks, and keeps the first error.
func (c *caller) call(method string, request message, response message) message {
	if c.err == nil {
		if err := c.conn.Invoke(context.Background(), service+method, request, response); err != nil {
			c.err = fmt.Errorf("%s: %w", method, err)
		}
	}
	return response
}

func event(partition string, kind int32) message {
	return made("EventRequest").with("partition", partition).with("type", protoreflect.EnumNumber(kind))
}

func stat(pod string, kind int32, value int64) message {
	return made("Stat").with("time", int64(9)).with("pod_name", pod).
		with("type", protoreflect.EnumNumber(kind)).with("value", value)
}

// play is a run as Skenario has them: create, pods, stats, recommendations, delete.
func play(conn *grpc.ClientConn) error {
	c := &caller{conn: conn}
	kind := c.call("PluginType", made("Empty"), made("PluginTypeResponse")).text("rec")
	able := c.call("GetCapabilities", made("Empty"), made("GetCapabilitiesResponse"))
	fmt.Println("type", kind)
	fmt.Println("capabilities", able.Get(able.field("rec")).List().Len())
	object := made("Autoscaler").with("type", kind).with("yaml", "kind: Any\n")
	c.call("Event", event("go-1", 0).with("autoscaler", object), made("Empty"))
	for i := range 2 {
		pod := made("Pod").with("name", fmt.Sprint("web-", i)).with("state", "active").
			with("last_transition", int64(1)).with("cpu_request", int32(500))
		c.call("Event", event("go-1", 0).with("pod", pod), made("Empty"))
	}
	stats := []message{stat("web-0", 0, 450), stat("web-1", 1, 3000)}
	c.call("Stat", made("StatRequest").with("partition", "go-1").with("stat", stats), made("Empty"))
	asked := made("HorizontalRecommendationRequest").with("partition", "go-1").with("time_nanos", int64(60e9))
	answer := c.call("HorizontalRecommendation", asked, made("HorizontalRecommendationResponse"))
	fmt.Println("horizontal", answer.number("rec"), answer.text("reason"))
	vertical := made("VerticalRecommendationRequest").with("partition", "go-1").with("time_nanos", int64(60e9))
	sized := c.call("VerticalRecommendation", vertical, made("VerticalRecommendationResponse"))
	for _, each := range sized.each("rec") {
		fmt.Println("vertical", each.text("resource_name"), each.number("lower_bound"), each.number("target"), each.number("upper_bound"))
	}
	scale := made("ScaleRequest").with("partition", "go-1").with("time", int64(60e9))
	fmt.Println("scale", c.call("Scale", scale, made("ScaleResponse")).number("rec"))
	c.call("Event", event("go-1", 2).with("autoscaler", object), made("Empty"))
	if c.err != nil {
		return c.err
	}
	c.call("HorizontalRecommendation", asked, made("HorizontalRecommendationResponse"))
	fmt.Println("afterwards", c.err)
	return nil
}
