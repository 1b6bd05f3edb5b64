// Is a command one that Karpenter's search does not come to? Then it has to come last: nothing may be left that Karpenter would do, and
// it has to be cheaper by Karpenter's own prices.
package main

import (
	"fmt"
	"slices"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	karpenter "sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	algebra "sigs.k8s.io/karpenter/pkg/scheduling"
)

// isSearched tells whether Karpenter's search over several nodes may come to these: those with the highest savings ratio that budgets
// allow. Equal nodes may be in any order.
func (m *mind) isSearched(method namedMethod, names []string) (bool, error) {
	moment := m.clock.Now()
	defer m.clock.set(moment)
	all, _, err := m.candidates(method.Method, everyNode)
	if err != nil {
		return false, err
	}
	allowed, err := karpenter.BuildDisruptionBudgetMapping(m.ctx, m.cluster, m.clock, m.api, m.provider, silent{}, method.Reason())
	if err != nil {
		return false, err
	}
	isOurs := func(c *karpenter.Candidate) bool { return slices.Contains(names, c.Name()) }
	for _, last := range all {
		if !isOurs(last) {
			continue
		}
		for _, first := range all {
			if isOurs(first) || first.IsEmpty() || first.SavingsRatio() <= last.SavingsRatio()*(1+1e-9) {
				continue
			}
			// It is only passed over where those of its NodePool in front of it use the budget up.
			used := 0
			for _, c := range all {
				if isOurs(c) && c.NodePool.Name == first.NodePool.Name && c.SavingsRatio() >= first.SavingsRatio()*(1-1e-9) {
					used++
				}
			}
			if used < allowed[first.NodePool.Name] {
				return false, nil
			}
		}
	}
	return true, nil
}

// beforeOwn is what Karpenter would do on this cluster. A command of ours that it would not find has to wait for that.
func (m *mind) beforeOwn() (string, error) {
	found, err := m.decide()
	if err != nil {
		return "", err
	}
	for _, c := range found.commands {
		if shown := newCommand(found.method, c); launchable(round{Commands: []command{shown}}) {
			return told(shown), nil
		}
	}
	return "", nil
}

// asPlanned is an error if what was planned cannot be launched at that price, by Karpenter's offerings, or does not cost less.
func asPlanned(sizes cloudprovider.InstanceTypes, planned *offering, now float64) error {
	for _, t := range sizes {
		for _, o := range t.Offerings.Launchable() {
			if t.Name == planned.InstanceType && stated(o, corev1.LabelTopologyZone) == planned.Zone &&
				stated(o, v1.CapacityTypeLabelKey) == planned.CapacityType && o.Price <= planned.Price+1e-9 && planned.Price < now-1e-9 {
				return nil
			}
		}
	}
	return fmt.Errorf("%s cannot be launched for less than %v", planned.InstanceType, now)
}

// isCheaper tells whether a replacement is cheaper whatever is launched. If only what is planned is, Karpenter may still launch another
// of the instance types that it lists.
func (m *mind) isCheaper(candidates []*karpenter.Candidate, sizes cloudprovider.InstanceTypes, replacement claim,
	requirements algebra.Requirements) (isAlways bool, err error) {
	now := lo.SumBy(candidates, func(c *karpenter.Candidate) float64 { return c.Price })
	isSpot := func(c *karpenter.Candidate) bool { return c.Labels()[v1.CapacityTypeLabelKey] == v1.CapacityTypeSpot }
	if lo.EveryBy(candidates, isSpot) && requirements.Get(v1.CapacityTypeLabelKey).Has(v1.CapacityTypeSpot) &&
		!options.FromContext(m.ctx).FeatureGates.SpotToSpotConsolidation {
		return false, fmt.Errorf("spot is not replaced by spot")
	}
	if len(sizes) == 0 {
		return false, fmt.Errorf("a replacement has no instance types")
	}
	for _, t := range sizes {
		switch worst := t.Offerings.Launchable().WorstLaunchPrice(requirements); {
		case worst < now:
			isAlways = true
		case replacement.Offering == nil || t.Name != replacement.Offering.InstanceType:
			return false, fmt.Errorf("%s may cost %v, which is not less than %v", t.Name, worst, now)
		default:
			if err := asPlanned(sizes, replacement.Offering, now); err != nil {
				return false, err
			}
		}
	}
	return isAlways, nil
}
