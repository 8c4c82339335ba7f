package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"kubescene.dev/clients/go/scenario"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	fanOut  = "fan-out"
	copyOf  = "copy-of"
	tooMany = 1000
)

// FanOut makes and keeps the copies that the label of a ConfigMap asks for.
type FanOut struct {
	client.Client
	simulator *scenario.Config
}

//kubescene:loop name=fan-out config=f.simulator context=ctx
func (f *FanOut) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	//kubescene:generated
	defer scenario.CheckScenarioStepPhaseContext(ctx, "fan-out", f.simulator)
	var source corev1.ConfigMap
	if err := f.Get(ctx, request.NamespacedName, &source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	wanted, err := strconv.Atoi(source.Labels[fanOut])
	if err != nil || wanted < 0 || wanted > tooMany {
		return ctrl.Result{}, nil // not one of ours
	}
	var copies corev1.ConfigMapList
	err = f.List(ctx, &copies, client.InNamespace(source.Namespace), client.MatchingLabels{copyOf: source.Name})
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, f.keep(ctx, &source, copies.Items, wanted)
}

// keep writes the copies in the order of their numbers, then deletes those that are too many.
func (f *FanOut) keep(ctx context.Context, source *corev1.ConfigMap, there []corev1.ConfigMap, wanted int) error {
	left := map[string]*corev1.ConfigMap{}
	for i := range there {
		left[there[i].Name] = &there[i]
	}
	for number := range wanted {
		name := fmt.Sprintf("%s-%d", source.Name, number)
		if err := f.write(ctx, source, name, left[name]); err != nil {
			return err
		}
		delete(left, name)
	}
	for number := wanted; len(left) > 0 && number < tooMany; number++ {
		name := fmt.Sprintf("%s-%d", source.Name, number)
		if extra := left[name]; extra != nil {
			if err := client.IgnoreNotFound(f.Delete(ctx, extra)); err != nil {
				return err
			}
			delete(left, name)
		}
	}
	return nil
}

// write makes a copy, or brings it up to date.
func (f *FanOut) write(ctx context.Context, source *corev1.ConfigMap, name string, there *corev1.ConfigMap) error {
	if there == nil {
		return client.IgnoreAlreadyExists(f.Create(ctx, f.copied(source, name)))
	}
	if maps.Equal(there.Data, source.Data) {
		return nil
	}
	changed := there.DeepCopy()
	changed.Data = source.Data
	return f.Update(ctx, changed)
}

func (f *FanOut) copied(source *corev1.ConfigMap, name string) *corev1.ConfigMap {
	owner := metav1.NewControllerRef(source, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       source.Namespace,
			Name:            name,
			Labels:          map[string]string{copyOf: source.Name},
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Data: source.Data,
	}
}
