// The JSON that both programs print.
package main

import (
	"math"
	"sort"
	"time"

	"go.uber.org/multierr"
	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	algebra "sigs.k8s.io/karpenter/pkg/scheduling"
)

type result struct {
	Version       int            `json:"version"`
	NewNodeClaims []claim        `json:"newNodeClaims"`
	ExistingNodes []existingNode `json:"existingNodes"`
	Unschedulable []failure      `json:"unschedulable"`
	Stats         stats          `json:"stats"`
}

type claim struct {
	NodePool      string                                    `json:"nodePool"`
	InstanceTypes []string                                  `json:"instanceTypes"`
	Offering      *offering                                 `json:"offering"`
	Requirements  []v1.NodeSelectorRequirementWithMinValues `json:"requirements"`
	Requests      corev1.ResourceList                       `json:"requests"`
	Pods          []string                                  `json:"pods"`
}

type offering struct {
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"price"`
}

type existingNode struct {
	Name string   `json:"name"`
	Pods []string `json:"pods"`
}

type failure struct {
	Pod      string   `json:"pod"`
	Reasons  []string `json:"reasons"`
	Rejected bool     `json:"rejected,omitempty"`
	Deferred bool     `json:"deferred,omitempty"`
}

type stats struct {
	Pods        int     `json:"pods"`
	Nodes       int     `json:"nodes"`
	Cost        float64 `json:"cost"`
	SolveMicros int64   `json:"solveMicros"`
	BuildMicros int64   `json:"buildMicros"`
	LoadMicros  int64   `json:"loadMicros"`
}

func newResult() result {
	return result{Version: 1, NewNodeClaims: []claim{}, ExistingNodes: []existingNode{}, Unschedulable: []failure{}}
}

func (r *result) fail(pod *corev1.Pod, err error, rejected bool) {
	entry := failure{Pod: nameOf(pod), Rejected: rejected, Deferred: scheduling.IsReservedOfferingError(err)}
	for _, reason := range multierr.Errors(err) {
		entry.Reasons = append(entry.Reasons, reason.Error())
	}
	r.Unschedulable = append(r.Unschedulable, entry)
}

func (r *result) take(solved scheduling.Results) {
	for _, c := range solved.NewNodeClaims {
		r.NewNodeClaims = append(r.NewNodeClaims, newClaim(c))
	}
	for _, node := range solved.ExistingNodes {
		if len(node.Pods) > 0 {
			r.ExistingNodes = append(r.ExistingNodes, existingNode{Name: node.Name(), Pods: namesOf(node.Pods)})
		}
	}
	for pod, err := range solved.PodErrors {
		r.fail(pod, err, false)
	}
}

// finish sorts what came in any order and adds up.
func (r result) finish(w *world, started, built time.Time) result {
	sort.Slice(r.NewNodeClaims, func(i, j int) bool { return firstPod(r.NewNodeClaims[i]) < firstPod(r.NewNodeClaims[j]) })
	sort.Slice(r.ExistingNodes, func(i, j int) bool { return r.ExistingNodes[i].Name < r.ExistingNodes[j].Name })
	sort.Slice(r.Unschedulable, func(i, j int) bool { return r.Unschedulable[i].Pod < r.Unschedulable[j].Pod })
	r.Stats.Nodes = len(r.NewNodeClaims)
	r.Stats.Pods = len(r.Unschedulable)
	for _, c := range r.NewNodeClaims {
		r.Stats.Pods += len(c.Pods)
		if c.Offering != nil {
			r.Stats.Cost += c.Offering.Price
		}
	}
	for _, node := range r.ExistingNodes {
		r.Stats.Pods += len(node.Pods)
	}
	r.Stats.LoadMicros = w.loading.Microseconds()
	r.Stats.BuildMicros = w.building.Microseconds() + built.Sub(started).Microseconds()
	return r
}

func newClaim(c *scheduling.NodeClaim) claim {
	ordered := byPrice(c.InstanceTypeOptions, c.Requirements)
	return claim{
		NodePool:      c.NodePoolName,
		InstanceTypes: names(ordered),
		Offering:      cheapest(ordered, c.Requirements),
		Requirements:  ownRequirements(c.Requirements),
		Requests:      c.Spec.Resources.Requests,
		Pods:          namesOf(c.Pods),
	}
}

// ownRequirements leaves out the two keys that exist only while Karpenter simulates.
func ownRequirements(requirements algebra.Requirements) []v1.NodeSelectorRequirementWithMinValues {
	own := []v1.NodeSelectorRequirementWithMinValues{}
	for _, entry := range requirements.NodeSelectorRequirements() {
		if entry.Key != v1.NodeRegisteredLabelKey && entry.Key != v1.NodeInitializedLabelKey {
			sort.Strings(entry.Values)
			own = append(own, entry)
		}
	}
	sort.Slice(own, func(i, j int) bool {
		if own[i].Key != own[j].Key {
			return own[i].Key < own[j].Key
		}
		return own[i].Operator < own[j].Operator
	})
	return own
}

// launchPrice is the price of the cheapest offering a node of this type could be launched with now.
func launchPrice(t *cloudprovider.InstanceType, requirements algebra.Requirements) (float64, *cloudprovider.Offering) {
	price, best := math.MaxFloat64, (*cloudprovider.Offering)(nil)
	for _, o := range t.Offerings.Launchable().Compatible(requirements) {
		if o.Price < price {
			price, best = o.Price, o
		}
	}
	return price, best
}

// byPrice orders as Karpenter does, and equal prices by name.
func byPrice(types []*cloudprovider.InstanceType, requirements algebra.Requirements) []*cloudprovider.InstanceType {
	prices := map[string]float64{}
	for _, t := range types {
		prices[t.Name], _ = launchPrice(t, requirements)
	}
	ordered := append([]*cloudprovider.InstanceType{}, types...)
	sort.Slice(ordered, func(i, j int) bool {
		a, b := ordered[i].Name, ordered[j].Name
		return prices[a] < prices[b] || prices[a] == prices[b] && a < b
	})
	return ordered
}

func cheapest(ordered []*cloudprovider.InstanceType, requirements algebra.Requirements) *offering {
	if len(ordered) == 0 {
		return nil
	}
	price, best := launchPrice(ordered[0], requirements)
	if best == nil {
		return nil
	}
	return &offering{
		InstanceType: ordered[0].Name,
		Zone:         stated(best, corev1.LabelTopologyZone),
		CapacityType: stated(best, v1.CapacityTypeLabelKey),
		Price:        price,
	}
}

// stated is the value of a label of an offering, or nothing if the offering does not say.
func stated(o *cloudprovider.Offering, key string) string {
	if values := o.Requirements.Get(key).Values(); len(values) > 0 {
		return algebra.NewRequirement(key, corev1.NodeSelectorOpIn, values...).Any()
	}
	return ""
}

func names(types []*cloudprovider.InstanceType) []string {
	all := []string{}
	for _, t := range types {
		all = append(all, t.Name)
	}
	return all
}

func nameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func namesOf(pods []*corev1.Pod) []string {
	all := []string{}
	for _, pod := range pods {
		all = append(all, nameOf(pod))
	}
	sort.Strings(all)
	return all
}

func firstPod(c claim) string {
	if len(c.Pods) == 0 {
		return ""
	}
	return c.Pods[0]
}
