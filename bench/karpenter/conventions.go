// What the format says about a field that a file leaves out.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// keptByNobody is a finalizer that lets the in-memory API hold an object that is being deleted.
const keptByNobody = "tenon.local/kept"

// clusterScoped are the kinds that live in no namespace.
var clusterScoped = map[string]bool{
	"Node": true, "NodePool": true, "NodeClaim": true, "PersistentVolume": true, "StorageClass": true,
	"CSINode": true, "VolumeAttachment": true, "Namespace": true,
}

// complete fills what is missing and drops what a plan cannot use.
func complete(ctx context.Context, objects []client.Object) []client.Object {
	var kept []client.Object
	for _, object := range objects {
		completeMetadata(object)
		switch o := object.(type) {
		case *corev1.Pod:
			fillRequests(&o.Spec)
			fillProtocols(&o.Spec)
			waitIfUnborn(o)
		case *appsv1.DaemonSet:
			fillRequests(&o.Spec.Template.Spec)
			fillProtocols(&o.Spec.Template.Spec)
		case *v1.NodePool:
			completeNodePool(ctx, o)
		case *v1.NodeClaim:
			if o.Status.ProviderID == "" {
				fmt.Fprintf(os.Stderr, "note: NodeClaim %s has no providerID and is passed over\n", o.Name)
				continue
			}
			if o.Spec.NodeClassRef == nil {
				o.Spec.NodeClassRef = defaultClass()
			}
		}
		kept = append(kept, object)
	}
	return kept
}

func completeMetadata(object client.Object) {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if object.GetNamespace() == "" && !clusterScoped[kind] {
		object.SetNamespace("default")
	}
	if object.GetUID() == "" {
		uid := object.GetName()
		if object.GetNamespace() != "" {
			uid = object.GetNamespace() + "/" + uid
		}
		object.SetUID(types.UID(uid))
	}
	object.SetResourceVersion("")
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		object.SetFinalizers([]string{keptByNobody})
	}
}

// waitIfUnborn takes a pod without a status for one that fits nowhere: every API server gives a pod a status, so this one
// was never in a cluster.
func waitIfUnborn(pod *corev1.Pod) {
	if !reflect.DeepEqual(pod.Status, corev1.PodStatus{}) || pod.Spec.NodeName != "" || len(pod.Spec.SchedulingGates) > 0 {
		return
	}
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}
}

// fillRequests does what the API server does to a pod: a limit without a request is the request. At the level of the pod
// it is so only for what no container asks for, but for huge pages always.
func fillRequests(spec *corev1.PodSpec) {
	asked := map[corev1.ResourceName]bool{}
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			needs := &containers[i].Resources
			for name, limit := range needs.Limits {
				if _, ok := needs.Requests[name]; ok {
					continue
				}
				if needs.Requests == nil {
					needs.Requests = corev1.ResourceList{}
				}
				needs.Requests[name] = limit
			}
			for name := range needs.Requests {
				asked[name] = true
			}
		}
	}
	if spec.Resources == nil {
		return
	}
	for name, limit := range spec.Resources.Limits {
		if _, ok := spec.Resources.Requests[name]; ok || asked[name] && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			continue
		}
		if spec.Resources.Requests == nil {
			spec.Resources.Requests = corev1.ResourceList{}
		}
		spec.Resources.Requests[name] = limit
	}
}

// fillProtocols does what the API server does to a port: it is TCP unless it says otherwise. Karpenter compares the texts.
func fillProtocols(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			for j := range containers[i].Ports {
				if port := &containers[i].Ports[j]; port.Protocol == "" {
					port.Protocol = corev1.ProtocolTCP
				}
			}
		}
	}
}

// completeNodePool makes a pool ready unless it says otherwise or its own validation does.
func completeNodePool(ctx context.Context, pool *v1.NodePool) {
	if pool.Spec.Template.Spec.NodeClassRef == nil {
		pool.Spec.Template.Spec.NodeClassRef = defaultClass()
	}
	for _, condition := range pool.Status.Conditions {
		if condition.Type == status.ConditionReady && condition.Status != "True" {
			return
		}
	}
	if err := pool.RuntimeValidate(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "note: NodePool %s is not valid: %v\n", pool.Name, err)
		pool.StatusConditions().SetFalse(v1.ConditionTypeValidationSucceeded, "NodePoolValidationFailed", err.Error())
		return
	}
	pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
}

func defaultClass() *v1.NodeClassReference {
	return &v1.NodeClassReference{Group: "tenon.local", Kind: "NodeClass", Name: "default"}
}
