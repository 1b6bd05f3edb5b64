// What a cluster is once a command is done.
package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	algebra "sigs.k8s.io/karpenter/pkg/scheduling"
	podutil "sigs.k8s.io/karpenter/pkg/utils/pod"
)

// carriedOut are the objects once all commands of a round are done: nodes are gone or ready, and pods are where they were to go.
func carriedOut(in input, done round, number int, now time.Time) []client.Object {
	objects := in.objects
	for i, c := range done.Commands {
		objects = carriedOutOne(input{in.ctx, in.types, objects}, c, fmt.Sprintf("round%d-%d", number, i+1), now)
	}
	return objects
}

func carriedOutOne(in input, c command, prefix string, now time.Time) []client.Object {
	gone, claims := map[string]bool{}, map[string]bool{}
	for _, node := range c.Nodes {
		gone[node.Name], claims[node.NodeClaim] = true, true
	}
	targets := targetsOf(c, prefix)
	touched := map[string]bool{}
	var after []client.Object
	var before *corev1.Node
	for _, object := range in.objects {
		switch o := object.(type) {
		case *corev1.Node:
			if gone[o.Name] {
				if o.Name == c.Nodes[0].Name {
					before = o
				}
				continue
			}
		case *v1.NodeClaim:
			if claims[o.Name] {
				continue
			}
		case *corev1.Pod:
			if gone[o.Spec.NodeName] {
				if !podutil.IsReschedulable(o) {
					continue
				}
				object = moved(o, targets[nameOf(o)])
				touched[targets[nameOf(o)]] = true
			}
		}
		after = append(after, object)
	}
	for i, replacement := range c.Replacements {
		after = append(after, arrived(in, replacement, targetName(c, prefix, i), before, now)...)
	}
	for _, object := range after {
		if claim, ok := object.(*v1.NodeClaim); ok && touched[claim.Status.NodeName] {
			claim.Status.LastPodEventTime = metav1.NewTime(now)
		}
	}
	return after
}

// targetName names a new node after the first that goes.
func targetName(c command, prefix string, index int) string {
	stem := c.Nodes[0].Name
	if _, rest, found := strings.Cut(stem, "-for-"); found {
		stem = rest
	}
	return fmt.Sprintf("%s-%d-for-%s", prefix, index+1, stem)
}

func targetsOf(c command, prefix string) map[string]string {
	targets := map[string]string{}
	for _, move := range c.Moves {
		if move.Replacement != nil {
			targets[move.Pod] = targetName(c, prefix, *move.Replacement)
		} else {
			targets[move.Pod] = move.Node
		}
	}
	return targets
}

// moved is the pod on another node, or pending.
func moved(pod *corev1.Pod, to string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.NodeName = to
	if to == "" {
		pod.Status = corev1.PodStatus{}
		waitIfUnborn(pod)
	}
	pod.Status.NominatedNodeName = ""
	pod.DeletionTimestamp = nil
	return pod
}

// arrived are the objects of a new node that is ready.
func arrived(in input, replacement claim, name string, before *corev1.Node, now time.Time) []client.Object {
	var pool *v1.NodePool
	for _, object := range in.objects {
		if o, ok := object.(*v1.NodePool); ok && o.Name == replacement.NodePool {
			pool = o
		}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{}}}
	node.Spec.ProviderID = "played://" + name
	if replacement.Offering == nil || pool == nil {
		// A pool with a fixed number of nodes makes the same again.
		if before == nil {
			return nil
		}
		node.Labels = before.DeepCopy().Labels
		node.Spec.Taints = before.Spec.Taints
		node.Status = *before.Status.DeepCopy()
	} else {
		node.Labels = labelsOf(in.types, replacement, pool)
		node.Spec.Taints = pool.Spec.Template.Spec.Taints
		for _, t := range in.types {
			if t.Name == replacement.Offering.InstanceType {
				node.Status.Capacity, node.Status.Allocatable = t.Capacity, t.Allocatable()
			}
		}
	}
	node.Labels[corev1.LabelHostname] = name
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: node.DeepCopy().Labels}}
	claim.CreationTimestamp = metav1.NewTime(now)
	claim.Spec.NodeClassRef = defaultClass()
	if pool != nil {
		claim.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
		claim.Spec.ExpireAfter = pool.Spec.Template.Spec.ExpireAfter
		claim.Spec.TerminationGracePeriod = pool.Spec.Template.Spec.TerminationGracePeriod
	}
	claim.Status = v1.NodeClaimStatus{ProviderID: node.Spec.ProviderID, NodeName: name, Capacity: node.Status.Capacity,
		Allocatable: node.Status.Allocatable, LastPodEventTime: metav1.NewTime(now)}
	for _, kind := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized} {
		claim.Status.Conditions = append(claim.Status.Conditions, status.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind,
			LastTransitionTime: metav1.NewTime(now)})
	}
	return []client.Object{node, claim}
}

// labelsOf is what a provider and the kubelet would put on the node.
func labelsOf(all []*cloudprovider.InstanceType, replacement claim, pool *v1.NodePool) map[string]string {
	labels := map[string]string{}
	put := func(requirements algebra.Requirements) {
		for key, requirement := range requirements {
			if requirement.Operator() == corev1.NodeSelectorOpIn && requirement.Len() == 1 {
				labels[key] = requirement.Values()[0]
			}
		}
	}
	wanted := algebra.NewNodeSelectorRequirementsWithMinValues(replacement.Requirements...)
	put(wanted)
	for _, t := range all {
		if t.Name != replacement.Offering.InstanceType {
			continue
		}
		put(t.Requirements)
		for _, o := range t.Offerings.Compatible(wanted) {
			if stated(o, corev1.LabelTopologyZone) == replacement.Offering.Zone &&
				stated(o, v1.CapacityTypeLabelKey) == replacement.Offering.CapacityType {
				put(o.Requirements)
				break
			}
		}
	}
	for key, value := range pool.Spec.Template.Labels {
		labels[key] = value
	}
	labels[v1.NodePoolLabelKey] = pool.Name
	labels[corev1.LabelInstanceTypeStable] = replacement.Offering.InstanceType
	labels[v1.NodeRegisteredLabelKey], labels[v1.NodeInitializedLabelKey] = "true", "true"
	return labels
}
