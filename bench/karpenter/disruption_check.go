// Would Karpenter do what another program decided? Each command is tried with Karpenter's own methods and its own validation, on the
// cluster that the commands before it leave behind.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	karpenter "sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	algebra "sigs.k8s.io/karpenter/pkg/scheduling"
)

// tries is how often a command is tried before it counts as one that Karpenter would not take.
const tries = 15

// checked is what is against the commands. Left is what Karpenter would still do after the last.
type checked struct {
	Faults []string `json:"faults"`
	Left   []string `json:"left"`
	Cost   float64  `json:"cost"`
}

func (a arguments) checkFile(name string) (checked, error) {
	path := a.check
	if name != "" {
		path = filepath.Join(a.check, name+".json")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return checked{}, err
	}
	var theirs disruptionResult
	if err := json.Unmarshal(text, &theirs); err != nil {
		return checked{}, fmt.Errorf("%s: %w", path, err)
	}
	for _, round := range theirs.Disruption.Rounds {
		for _, c := range round.Commands {
			for i := range c.Replacements {
				// Of a node of a static NodePool only the pool is said.
				if o := c.Replacements[i].Offering; o != nil && o.InstanceType == "" {
					c.Replacements[i].Offering = nil
				}
			}
		}
	}
	in, err := readInput(a)
	if err != nil {
		return checked{}, err
	}
	now, err := time.Parse(time.RFC3339, theirs.Disruption.Now)
	if err != nil {
		return checked{}, err
	}
	return check(in, now, theirs.Disruption.Rounds)
}

func check(in input, now time.Time, rounds []round) (checked, error) {
	out := checked{Faults: []string{}, Left: []string{}}
	in.objects = copies(in.objects)
	clk := newPlayClock(now, false)
	for number, this := range rounds {
		m, err := newMind(in, clk)
		if err != nil {
			return out, err
		}
		say := func(format string, rest ...any) {
			out.Faults = append(out.Faults, fmt.Sprintf("round %d: ", number+1)+fmt.Sprintf(format, rest...))
		}
		if err := m.checkRound(this, say); err != nil {
			return out, err
		}
		for _, c := range this.Commands {
			for _, fault := range forgotten(in.objects, c) {
				say("%s", fault)
			}
		}
		in.objects = carriedOut(in, this, number+1, clk.Now())
		for _, fault := range misplaced(in.objects, this, number+1) {
			say("%s", fault)
		}
		clk.set(clk.Now().Add(patience(in.objects)))
	}
	m, err := newMind(in, clk)
	if err != nil {
		return out, err
	}
	_, out.Cost = m.totals()
	left, err := m.decide()
	for _, c := range left.commands {
		if shown := newCommand(left.method, c); launchable(round{Commands: []command{shown}}) {
			out.Left = append(out.Left, told(shown))
		}
	}
	return out, err
}

// checkRound tries the methods before the one that was used, and then each command.
func (m *mind) checkRound(this round, say func(string, ...any)) error {
	for _, method := range m.methods() {
		used := this.Commands[0].Method == method.name
		if !used {
			commands, err := m.run(method.Method, everyNode)
			if err != nil {
				return err
			}
			for _, c := range commands {
				if shown := newCommand(method.name, c); launchable(round{Commands: []command{shown}}) {
					say("Karpenter would first do %s", told(shown))
				}
			}
			continue
		}
		for _, c := range this.Commands {
			// What Karpenter simulates depends on chance, such as the zone of a spread.
			var err error
			for range tries {
				if err = m.checkCommand(method, c); err == nil {
					break
				}
			}
			if err != nil {
				say("Karpenter would not do %s: %v", told(c), err)
			}
		}
		return nil
	}
	return fmt.Errorf("there is no method %s", this.Commands[0].Method)
}

func (m *mind) checkCommand(method namedMethod, c command) error {
	names := lo.Map(c.Nodes, func(node disruptedNode, _ int) string { return node.Name })
	isWanted := func(name string) bool { return slices.Contains(names, name) }
	if method.name != "multi-node" && method.name != "single-node" {
		return m.checkByMethod(method, c, isWanted)
	}
	moment := m.clock.Now()
	defer m.clock.set(moment)
	candidates, totals, err := m.candidates(method.Method, isWanted)
	if err != nil {
		return err
	}
	if len(candidates) != len(names) {
		return fmt.Errorf("%d of %d nodes are candidates", len(candidates), len(names))
	}
	tried, err := m.rebuilt(candidates, c)
	if err != nil {
		return err
	}
	if approved, _ := karpenter.EvaluateBalancedMove(m.ctx, tried, totals); !approved {
		return fmt.Errorf("its score is too low")
	}
	maker := karpenter.MakeConsolidation(m.clock, m.cluster, m.api, m.provisioner, m.provider, silent{}, m.queue)
	validator := karpenter.NewSingleConsolidationValidator(maker)
	if method.name == "multi-node" {
		validator = karpenter.NewMultiConsolidationValidator(maker)
	}
	_, err = validator.Validate(m.ctx, tried, 15*time.Second)
	return err
}

// checkByMethod gives the method only these nodes.
func (m *mind) checkByMethod(method namedMethod, c command, isWanted func(string) bool) error {
	commands, err := m.run(method.Method, isWanted)
	if err != nil {
		return err
	}
	if len(commands) == 0 {
		return fmt.Errorf("it finds nothing to do with these nodes")
	}
	theirs := newCommand(method.name, commands[0])
	if len(theirs.Nodes) != len(c.Nodes) || len(theirs.Replacements) != len(c.Replacements) {
		return fmt.Errorf("it would do %s", told(theirs))
	}
	price := func(c command) float64 {
		return lo.SumBy(c.Replacements, func(r claim) float64 { return lo.FromPtr(r.Offering).Price })
	}
	if price(c) > price(theirs)+1e-9 {
		return fmt.Errorf("it would do %s", told(theirs))
	}
	return nil
}

// rebuilt is the command as Karpenter would hold it. A replacement must be cheaper by the rules for consolidation.
func (m *mind) rebuilt(candidates []*karpenter.Candidate, c command) (karpenter.Command, error) {
	out := karpenter.Command{Candidates: candidates}
	for _, replacement := range c.Replacements {
		requirements := algebra.NewNodeSelectorRequirementsWithMinValues(replacement.Requirements...)
		var sizes cloudprovider.InstanceTypes
		for _, t := range m.provider.types {
			if slices.Contains(replacement.InstanceTypes, t.Name) {
				sizes = append(sizes, t)
			}
		}
		if err := m.isCheaper(candidates, sizes, requirements); err != nil {
			return out, err
		}
		made := &scheduling.NodeClaim{NodeClaimTemplate: scheduling.NodeClaimTemplate{NodePoolName: replacement.NodePool,
			Requirements: requirements, InstanceTypeOptions: sizes.OrderByPrice(requirements)}}
		out.Replacements = append(out.Replacements, &karpenter.Replacement{NodeClaim: made})
		out.Results.NewNodeClaims = append(out.Results.NewNodeClaims, made)
	}
	return out, nil
}

func (m *mind) isCheaper(candidates []*karpenter.Candidate, sizes cloudprovider.InstanceTypes, requirements algebra.Requirements) error {
	now := lo.SumBy(candidates, func(c *karpenter.Candidate) float64 { return c.Price })
	isSpot := func(c *karpenter.Candidate) bool { return c.Labels()[v1.CapacityTypeLabelKey] == v1.CapacityTypeSpot }
	if lo.EveryBy(candidates, isSpot) && requirements.Get(v1.CapacityTypeLabelKey).Has(v1.CapacityTypeSpot) &&
		!options.FromContext(m.ctx).FeatureGates.SpotToSpotConsolidation {
		return fmt.Errorf("spot is not replaced by spot")
	}
	for _, t := range sizes {
		if worst := t.Offerings.Launchable().WorstLaunchPrice(requirements); worst >= now {
			return fmt.Errorf("%s may cost %v, which is not less than %v", t.Name, worst, now)
		}
	}
	if len(sizes) == 0 {
		return fmt.Errorf("a replacement has no instance types")
	}
	return nil
}

// told is a command as a line.
func told(c command) string {
	nodes := lo.Map(c.Nodes, func(node disruptedNode, _ int) string { return fmt.Sprintf("%s (%v)", node.Name, node.Price) })
	line := fmt.Sprintf("%s: delete %s", c.Method, strings.Join(nodes, ", "))
	for _, replacement := range c.Replacements {
		line += fmt.Sprintf(", create %s %s", replacement.NodePool, lo.FromPtr(replacement.Offering).InstanceType)
		if replacement.Offering != nil {
			line += fmt.Sprintf(" %s %s (%v)", replacement.Offering.CapacityType, replacement.Offering.Zone, replacement.Offering.Price)
		}
	}
	return line
}
