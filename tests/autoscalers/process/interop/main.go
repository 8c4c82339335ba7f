// A go-plugin host and a go-plugin plugin, to see that both understand Kubescene.
//
//	interop plugin                 serves an autoscaler: as many pods as there are, and one more
//	interop legacy                 the same in the protocol of 2019
//	interop host COMMAND ARGS...   starts a plugin, plays a run with it, prints what it answered
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

var handshake = plugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "SKENARIO_PLUGIN",
	MagicCookieValue: "skplug",
}

// autoscaler joins both sides to go-plugin.
type autoscaler struct {
	plugin.NetRPCUnsupportedPlugin
	served *grpc.ServiceDesc
}

func (a *autoscaler) GRPCServer(broker *plugin.GRPCBroker, server *grpc.Server) error {
	server.RegisterService(a.served, newCounting())
	return nil
}

func (a *autoscaler) GRPCClient(ctx context.Context, broker *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

func serve(served *grpc.ServiceDesc) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake,
		Plugins:         plugin.PluginSet{"autoscaler": &autoscaler{served: served}},
		GRPCServer:      plugin.DefaultGRPCServer,
	})
}

func host(command []string) error {
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  handshake,
		Plugins:          plugin.PluginSet{"autoscaler": &autoscaler{}},
		Cmd:              exec.Command(command[0], command[1:]...),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: os.Stderr}),
	})
	defer client.Kill()
	protocol, err := client.Client()
	if err != nil {
		return err
	}
	if err := protocol.Ping(); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	fmt.Println("ping SERVING")
	raw, err := protocol.Dispense("autoscaler")
	if err != nil {
		return err
	}
	if err := play(raw.(*grpc.ClientConn)); err != nil {
		return err
	}
	client.Kill()
	fmt.Println("exited", client.Exited())
	return nil
}

func main() {
	err := errors.New("usage: interop plugin | legacy | host COMMAND ARGS...")
	switch {
	case len(os.Args) == 2 && os.Args[1] == "plugin":
		serve(modern)
		return
	case len(os.Args) == 2 && os.Args[1] == "legacy":
		serve(legacy)
		return
	case len(os.Args) > 2 && os.Args[1] == "host":
		err = host(os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
