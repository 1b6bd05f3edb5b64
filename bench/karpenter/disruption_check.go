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
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	karpenter "sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	algebra "sigs.k8s.io/karpenter/pkg/scheduling"
)

// tries is how often a command is tried before it counts as one that Karpenter would not take.
const tries = 15

// checked is what is against the commands. Own are those that Karpenter's search would not come to, at a moment when it would do
// nothing; early those of them that come when it would still do something. Left is what it would do after the last.
type checked struct {
	Faults []string `json:"faults"`
	Own    []string `json:"own"`
	Early  []string `json:"early"`
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
	out := checked{Faults: []string{}, Own: []string{}, Early: []string{}, Left: []string{}}
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
		if err := m.checkRound(this, say, &out); err != nil {
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
func (m *mind) checkRound(this round, say func(string, ...any), out *checked) error {
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
			var isOwn bool
			var err error
			for range tries {
				if isOwn, err = m.checkCommand(method, c); err == nil {
					break
				}
			}
			if err != nil {
				say("Karpenter would not do %s: %v", told(c), err)
			} else if isOwn {
				before, err := m.beforeOwn()
				if err != nil {
					return err
				}
				if before == "" {
					out.Own = append(out.Own, told(c))
				} else {
					out.Early = append(out.Early, fmt.Sprintf("%s, and Karpenter would do %s", told(c), before))
				}
			}
		}
		return nil
	}
	return fmt.Errorf("there is no method %s", this.Commands[0].Method)
}

// checkCommand tells whether Karpenter's search would not come to a command that is right.
func (m *mind) checkCommand(method namedMethod, c command) (isOwn bool, err error) {
	names := lo.Map(c.Nodes, func(node disruptedNode, _ int) string { return node.Name })
	isWanted := func(name string) bool { return slices.Contains(names, name) }
	if method.name != "multi-node" && method.name != "single-node" {
		return false, m.checkByMethod(method, c, isWanted)
	}
	moment := m.clock.Now()
	defer m.clock.set(moment)
	candidates, totals, err := m.candidates(method.Method, isWanted)
	if err != nil {
		return false, err
	}
	if len(candidates) != len(names) {
		return false, fmt.Errorf("%d of %d nodes are candidates", len(candidates), len(names))
	}
	tried, isOwn, err := m.rebuilt(candidates, c)
	if err != nil {
		return false, err
	}
	if approved, _ := karpenter.EvaluateBalancedMove(m.ctx, tried, totals); !approved {
		return false, fmt.Errorf("its score is too low")
	}
	maker := karpenter.MakeConsolidation(m.clock, m.cluster, m.api, m.provisioner, m.provider, silent{}, m.queue)
	validator := karpenter.NewSingleConsolidationValidator(maker)
	if method.name == "multi-node" {
		validator = karpenter.NewMultiConsolidationValidator(maker)
		isSearched, err := m.isSearched(method, names)
		if err != nil {
			return false, err
		}
		isOwn = isOwn || !isSearched
	}
	_, err = validator.Validate(m.ctx, tried, 15*time.Second)
	return isOwn, err
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

// rebuilt is the command as Karpenter would hold it. A replacement must be cheaper by the rules for consolidation, or at least as it
// is planned; then Karpenter would not come to it.
func (m *mind) rebuilt(candidates []*karpenter.Candidate, c command) (out karpenter.Command, isOwn bool, err error) {
	out = karpenter.Command{Candidates: candidates}
	for _, replacement := range c.Replacements {
		requirements := algebra.NewNodeSelectorRequirementsWithMinValues(replacement.Requirements...)
		var sizes cloudprovider.InstanceTypes
		for _, t := range m.provider.types {
			if slices.Contains(replacement.InstanceTypes, t.Name) {
				sizes = append(sizes, t)
			}
		}
		isAlways, err := m.isCheaper(candidates, sizes, replacement, requirements)
		if err != nil {
			return out, false, err
		}
		isOwn = isOwn || !isAlways
		made := &scheduling.NodeClaim{NodeClaimTemplate: scheduling.NodeClaimTemplate{NodePoolName: replacement.NodePool,
			Requirements: requirements, InstanceTypeOptions: sizes.OrderByPrice(requirements)}}
		out.Replacements = append(out.Replacements, &karpenter.Replacement{NodeClaim: made})
		out.Results.NewNodeClaims = append(out.Results.NewNodeClaims, made)
	}
	return out, isOwn, nil
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
