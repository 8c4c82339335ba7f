// An operator on controller-runtime, for the tests with programs from outside: for a ConfigMap labelled
// fan-out=N it keeps N copies. With -park it parks at the end of each loop, as the controller fan-out.
package main

import (
	"flag"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"kubescene.dev/clients/go/scenario"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	park := flag.Bool("park", false, "park at the end of each loop, as the controller fan-out")
	flag.Parse() // -kubeconfig is a flag of controller-runtime
	ctrl.SetLogger(klog.Background())
	if err := run(*park); err != nil {
		klog.ErrorS(err, "The operator ends")
		os.Exit(1)
	}
}

func run(park bool) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	simulator, err := parkingAt(config, park)
	if err != nil {
		return err
	}
	// So that the first loop, too, is known to park.
	if err := scenario.CheckScenarioStepPhase("fan-out", simulator); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	// One worker, which is the default: a turn is one loop.
	err = ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}).
		Owns(&corev1.ConfigMap{}).
		Complete(&FanOut{Client: manager.GetClient(), simulator: simulator})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// parkingAt is nil if the operator shall not park.
func parkingAt(config *rest.Config, park bool) (*scenario.Config, error) {
	if !park {
		return nil, nil
	}
	client, err := rest.HTTPClientFor(config)
	return &scenario.Config{Host: config.Host, Client: client}, err
}
