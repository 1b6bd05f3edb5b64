// The JSON of disruption that both programs print.
package main

import (
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/controllers/disruption"
	disruptionutils "sigs.k8s.io/karpenter/pkg/utils/disruption"
)

type disruptionResult struct {
	Disruption disruptionReport `json:"disruption"`
}

type disruptionReport struct {
	Now    string          `json:"now"`
	Rounds []round         `json:"rounds"`
	Stats  disruptionStats `json:"stats"`
}

type round struct {
	Commands []command `json:"commands"`
}

type command struct {
	Method         string          `json:"method"`
	Reason         string          `json:"reason"`
	Nodes          []disruptedNode `json:"nodes"`
	Replacements   []claim         `json:"replacements"`
	TerminateFirst string          `json:"terminateFirst,omitempty"`
	Moves          []podMove       `json:"moves"`
	Savings        float64         `json:"savings"`
}

type disruptedNode struct {
	Name           string  `json:"name"`
	NodeClaim      string  `json:"nodeClaim"`
	NodePool       string  `json:"nodePool"`
	InstanceType   string  `json:"instanceType"`
	Price          float64 `json:"price"`
	DisruptionCost float64 `json:"disruptionCost"`
}

type podMove struct {
	Pod         string `json:"pod"`
	Node        string `json:"node,omitempty"`
	Replacement *int   `json:"replacement,omitempty"`
}

type disruptionStats struct {
	Nodes      int     `json:"nodes"`
	Cost       float64 `json:"cost"`
	NodesAfter int     `json:"nodesAfter"`
	CostAfter  float64 `json:"costAfter"`
	Commands   int     `json:"commands"`
	MovedPods  int     `json:"movedPods"`
	Settled    bool    `json:"settled"`
	Stuck      bool    `json:"stuck,omitempty"`
	ScanMicros int64   `json:"scanMicros"`
}

// count adds up what was played.
func (r *disruptionReport) count(took time.Duration) {
	for _, round := range r.Rounds {
		r.Stats.Commands += len(round.Commands)
		for _, c := range round.Commands {
			r.Stats.MovedPods += len(c.Moves)
		}
	}
	r.Stats.ScanMicros = took.Microseconds()
}

// newCommand is a decision of Karpenter's as we print it.
func newCommand(method string, c karpenter.Command) command {
	out := command{Method: method, Reason: string(c.Reason()), Nodes: []disruptedNode{}, Replacements: []claim{}, Moves: []podMove{},
		TerminateFirst: string(c.TerminateFirstReason), Savings: c.SourceCost()}
	if c.Method == nil {
		out.Reason = ""
	}
	leaving := map[string]bool{}
	for _, candidate := range c.Candidates {
		leaving[candidate.Name()] = true
		out.Nodes = append(out.Nodes, disruptedNode{
			Name:           candidate.Name(),
			NodeClaim:      candidate.NodeClaim.Name,
			NodePool:       candidate.NodePool.Name,
			InstanceType:   candidate.Labels()[corev1.LabelInstanceTypeStable],
			Price:          candidate.Price,
			DisruptionCost: candidate.RescheduleDisruptionCost,
		})
	}
	isMoved := func(pod *corev1.Pod) bool { return leaving[pod.Spec.NodeName] }
	if c.TerminateFirstReason == "" {
		out.moves(c, isMoved)
	}
	for _, replacement := range out.Replacements {
		if replacement.Offering != nil {
			out.Savings -= replacement.Offering.Price
		}
	}
	return out
}

func (out *command) moves(c karpenter.Command, isMoved func(*corev1.Pod) bool) {
	for i, replacement := range c.Replacements {
		if replacement.IsStaticNodeClaim {
			out.Replacements = append(out.Replacements, claim{NodePool: replacement.NodePoolName})
			continue
		}
		out.Replacements = append(out.Replacements, newClaim(replacement.NodeClaim))
		for _, pod := range replacement.Pods {
			if isMoved(pod) {
				out.Moves = append(out.Moves, podMove{Pod: nameOf(pod), Replacement: &i})
			}
		}
	}
	for _, node := range c.Results.ExistingNodes {
		for _, pod := range node.Pods {
			if isMoved(pod) {
				out.Moves = append(out.Moves, podMove{Pod: nameOf(pod), Node: node.Name()})
			}
		}
	}
	sort.Slice(out.Moves, func(i, j int) bool { return out.Moves[i].Pod < out.Moves[j].Pod })
}

// totals are how many nodes have a NodeClaim, and what they cost together.
func (w *world) totals() (int, float64) {
	nodes, cost := 0, 0.0
	for _, node := range w.cluster.DeepCopyNodes() {
		if !node.Managed() || node.Node == nil {
			continue
		}
		nodes++
		for _, t := range w.provider.types {
			if t.Name == node.Labels()[corev1.LabelInstanceTypeStable] {
				cost += disruptionutils.ResolveOfferingPrice(node.Labels(), t)
			}
		}
	}
	return nodes, cost
}
