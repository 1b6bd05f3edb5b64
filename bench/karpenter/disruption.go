// Which nodes Karpenter would disrupt: its own methods in their order, played until none finds anything.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/controllers/disruption"
	nodeclaimdisruption "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/disruption"
	"sigs.k8s.io/karpenter/pkg/state/cost"
)

// disruption are the arguments of that question.
type disruption struct {
	disrupt  bool
	now      string
	rounds   int
	check    string
	timePass time.Duration
}

func (d *disruption) flags() {
	flag.BoolVar(&d.disrupt, "disruption", false, "print which nodes would be disrupted")
	flag.StringVar(&d.now, "now", "", "with --disruption: the time to decide at")
	flag.IntVar(&d.rounds, "rounds", 1, "with --disruption: play what is decided and decide again, at most so many times")
	flag.StringVar(&d.check, "check", "", "a report of `tenon plan --disruption`, or with --scenarios a folder of them: would Karpenter do that, too?")
	flag.DurationVar(&d.timePass, "time-single-node", 0, "only measure one pass over all single nodes, given up after so long instead of its own limit")
}

func (d *disruption) moment() (time.Time, error) {
	if d.now == "" {
		return time.Now(), nil
	}
	return time.Parse(time.RFC3339, d.now)
}

// decided are the commands of one method.
type decided struct {
	method   string
	commands []karpenter.Command
}

// mind is Karpenter's disruption controller without what it would write.
type mind struct {
	*world
	clock *playClock
	queue *karpenter.Queue
	cost  *cost.ClusterCost
}

// newMind is a world at a moment. Conditions that follow from the time are as Karpenter's own controller would set them.
func newMind(in input, clk *playClock) (*mind, error) {
	if err := consolidatable(in, clk); err != nil {
		return nil, err
	}
	w, err := newWorld(in, clk)
	if err != nil {
		return nil, err
	}
	m := &mind{world: w, clock: clk, cost: cost.NewClusterCost(in.ctx, w.provider, w.api)}
	m.queue = karpenter.NewQueue(w.api, silent{}, w.cluster, clk, w.provisioner)
	for _, object := range in.objects {
		if claim, ok := object.(*v1.NodeClaim); ok {
			if err := m.cost.UpdateNodeClaim(in.ctx, claim); err != nil {
				return nil, fmt.Errorf("the cost of NodeClaim %s: %w", claim.Name, err)
			}
		}
	}
	return m, nil
}

// consolidatable sets the condition Consolidatable of every NodeClaim. Whether one has drifted is what the files say.
func consolidatable(in input, clk *playClock) error {
	api := newAPI(copies(in.objects))
	controller := nodeclaimdisruption.NewController(clk, unwritten{api}, newProvider(in.types, in.objects))
	for _, object := range in.objects {
		claim, ok := object.(*v1.NodeClaim)
		if !ok {
			continue
		}
		looked := claim.DeepCopy()
		// What a provider thinks of drift is not asked for, and an error of it does not matter.
		_, _ = controller.Reconcile(in.ctx, looked)
		if found := looked.StatusConditions().Get(v1.ConditionTypeConsolidatable); found != nil {
			claim.StatusConditions().Set(*found)
		} else {
			_ = claim.StatusConditions().Clear(v1.ConditionTypeConsolidatable)
		}
	}
	return nil
}

// unwritten lets a controller patch a status, and keeps the patch to the object in hand.
type unwritten struct{ client.Client }

func (unwritten) Status() client.SubResourceWriter { return noStatus{} }

type noStatus struct{ client.SubResourceWriter }

func (noStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

// methods are Karpenter's, by the names that we print.
func (m *mind) methods() []namedMethod {
	var all []namedMethod
	for _, method := range karpenter.NewMethods(m.ctx, m.clock, m.cluster, m.api, m.provisioner, m.provider, silent{}, m.queue) {
		all = append(all, namedMethod{methodName(method), method})
	}
	return all
}

type namedMethod struct {
	name string
	karpenter.Method
}

func methodName(method karpenter.Method) string {
	switch method.(type) {
	case *karpenter.Emptiness:
		return "emptiness"
	case *karpenter.StaticDrift:
		return "static-drift"
	case *karpenter.Drift:
		return "drift"
	case *karpenter.MultiNodeConsolidation:
		return "multi-node"
	case *karpenter.SingleNodeConsolidation:
		return "single-node"
	default:
		return fmt.Sprintf("%T", method)
	}
}

// candidates are the nodes that a method looks at, those that are wanted.
func (m *mind) candidates(method karpenter.Method, isWanted func(name string) bool) ([]*karpenter.Candidate, map[string]karpenter.NodePoolTotals, error) {
	all, totals, err := karpenter.GetCandidatesWithTotals(m.ctx, m.cluster, m.api, silent{}, m.clock, m.provider,
		method.ShouldDisrupt, method.Class(), m.queue, m.cost)
	if err != nil {
		return nil, nil, err
	}
	var wanted []*karpenter.Candidate
	for _, candidate := range all {
		if isWanted(candidate.Name()) {
			wanted = append(wanted, candidate)
		}
	}
	return wanted, totals, nil
}

// run asks one method, at the time of the round.
func (m *mind) run(method karpenter.Method, isWanted func(name string) bool) ([]karpenter.Command, error) {
	defer m.clock.set(m.clock.Now())
	if !m.clock.runs {
		moment := m.clock.Now()
		defer func() { m.clock.set(moment) }()
	}
	candidates, totals, err := m.candidates(method, isWanted)
	if err != nil || len(candidates) == 0 {
		return nil, err
	}
	if scored, ok := method.(karpenter.NodePoolTotalsSetter); ok {
		scored.SetNodePoolTotals(totals)
	}
	budgets, err := karpenter.BuildDisruptionBudgetMapping(m.ctx, m.cluster, m.clock, m.api, m.provider, silent{}, method.Reason())
	if err != nil {
		return nil, err
	}
	commands, err := method.ComputeCommands(m.ctx, budgets, candidates...)
	var real []karpenter.Command
	for _, c := range commands {
		if c.Decision() != karpenter.NoOpDecision {
			c.Method = method
			real = append(real, c)
		}
	}
	return real, err
}

// decide asks the methods in their order; the first that finds something ends the round.
func (m *mind) decide() (decided, error) {
	for _, method := range m.methods() {
		commands, err := m.run(method.Method, everyNode)
		if err != nil {
			return decided{}, fmt.Errorf("%s: %w", method.name, err)
		}
		if len(commands) > 0 {
			return decided{method.name, commands}, nil
		}
	}
	return decided{}, nil
}

func everyNode(string) bool { return true }

func copies(objects []client.Object) []client.Object {
	all := make([]client.Object, 0, len(objects))
	for _, object := range objects {
		all = append(all, object.DeepCopyObject().(client.Object))
	}
	return all
}

// patience is a second longer than the longest consolidateAfter.
func patience(objects []client.Object) time.Duration {
	longest := time.Duration(0)
	for _, object := range objects {
		if pool, ok := object.(*v1.NodePool); ok && pool.Spec.Disruption.ConsolidateAfter.Duration != nil {
			longest = max(longest, *pool.Spec.Disruption.ConsolidateAfter.Duration)
		}
	}
	return longest.Truncate(time.Second) + time.Second
}
