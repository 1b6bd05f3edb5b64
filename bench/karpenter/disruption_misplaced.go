// Does each pod that was moved fit where it is? Resources, taints and required labels; what depends on other pods is Karpenter's
// simulation to say.
package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	algebra "sigs.k8s.io/karpenter/pkg/scheduling"
	podutil "sigs.k8s.io/karpenter/pkg/utils/pod"
	"sigs.k8s.io/karpenter/pkg/utils/resources"
)

// forgotten are pods that had to go somewhere and were not moved. Those that cost nothing to move need no node.
func forgotten(objects []client.Object, c command) []string {
	if c.Method != "multi-node" && c.Method != "single-node" {
		return nil
	}
	gone, targets := map[string]bool{}, targetsOf(c, "")
	for _, node := range c.Nodes {
		gone[node.Name] = true
	}
	var faults []string
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok && gone[pod.Spec.NodeName] && podutil.IsReschedulable(pod) && targets[nameOf(pod)] == "" {
			faults = append(faults, fmt.Sprintf("pod %s loses node %s and is not moved", nameOf(pod), pod.Spec.NodeName))
		}
	}
	return faults
}

// misplaced are pods of a round that do not fit on the node they were moved to.
func misplaced(objects []client.Object, done round, number int) []string {
	targets := map[string]bool{}
	for i, c := range done.Commands {
		for pod := range targetsOf(c, fmt.Sprintf("round%d-%d", number, i+1)) {
			targets[pod] = true
		}
	}
	nodes, pods := map[string]*corev1.Node{}, map[string][]*corev1.Pod{}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Node:
			nodes[o.Name] = o
		case *corev1.Pod:
			if !podutil.IsTerminal(o) {
				pods[o.Spec.NodeName] = append(pods[o.Spec.NodeName], o)
			}
		}
	}
	var faults []string
	for name, there := range pods {
		node := nodes[name]
		for _, pod := range there {
			if !targets[nameOf(pod)] {
				continue
			}
			switch {
			case node == nil:
				faults = append(faults, fmt.Sprintf("pod %s is moved to %q, which is not there", nameOf(pod), name))
			case !resources.Fits(resources.RequestsForPods(there...), node.Status.Allocatable):
				faults = append(faults, fmt.Sprintf("node %s has no room for pod %s", name, nameOf(pod)))
			case algebra.Taints(node.Spec.Taints).ToleratesPod(pod) != nil:
				faults = append(faults, fmt.Sprintf("pod %s does not tolerate the taints of node %s", nameOf(pod), name))
			case algebra.NewLabelRequirements(node.Labels).Compatible(algebra.NewStrictPodRequirements(pod)) != nil:
				faults = append(faults, fmt.Sprintf("pod %s does not want the labels of node %s", nameOf(pod), name))
			}
		}
	}
	return faults
}
