// Which instance types there are.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// typeEntry is one element of the file. encoding/json takes keys in any case.
type typeEntry struct {
	Name                   string
	Capacity               corev1.ResourceList
	CapacityType           string
	Overhead               *cloudprovider.InstanceTypeOverhead
	Requirements           []corev1.NodeSelectorRequirement
	Offerings              []offeringEntry
	VolumeAttachmentLimits map[string]int
}

type offeringEntry struct {
	Requirements        []corev1.NodeSelectorRequirement
	Price               float64
	Available           *bool
	ReservationCapacity int
}

// builtInLabels are the well-known labels before any catalogue adds its own.
var builtInLabels = v1.WellKnownLabels.Clone()

// readCatalogue reads the file and makes every label key it uses well known.
func readCatalogue(path string) ([]*cloudprovider.InstanceType, error) {
	if path == "" {
		return nil, fmt.Errorf("--instance-types is missing")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var entries []typeEntry
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	names := sets.New[string]()
	var types []*cloudprovider.InstanceType
	for _, entry := range entries {
		if entry.Name == "" || names.Has(entry.Name) {
			return nil, fmt.Errorf("%s: the name %q is empty or used twice", path, entry.Name)
		}
		names.Insert(entry.Name)
		types = append(types, entry.build())
	}
	declareLabels(types)
	return types, nil
}

func (e typeEntry) build() *cloudprovider.InstanceType {
	t := &cloudprovider.InstanceType{
		Name:                   e.Name,
		Capacity:               e.Capacity,
		VolumeAttachmentLimits: e.VolumeAttachmentLimits,
		Overhead:               e.Overhead,
		Offerings:              e.offerings(),
	}
	if t.Overhead == nil {
		t.Overhead = &cloudprovider.InstanceTypeOverhead{}
	}
	if e.Requirements != nil {
		t.Requirements = scheduling.NewNodeSelectorRequirements(e.Requirements...)
	} else {
		t.Requirements = defaultRequirements(t.Offerings)
	}
	if !t.Requirements.Has(corev1.LabelInstanceTypeStable) {
		t.Requirements.Add(scheduling.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, e.Name))
	}
	return t
}

func (e typeEntry) offerings() cloudprovider.Offerings {
	if e.Offerings == nil {
		return cloudprovider.Offerings{e.defaultOffering()}
	}
	var all cloudprovider.Offerings
	for _, entry := range e.Offerings {
		all = append(all, &cloudprovider.Offering{
			Requirements:        scheduling.NewNodeSelectorRequirements(entry.Requirements...),
			Price:               entry.Price,
			Available:           entry.Available == nil || *entry.Available,
			ReservationCapacity: entry.ReservationCapacity,
		})
	}
	return all
}

// defaultOffering prices a size as the Proxmox provider does.
func (e typeEntry) defaultOffering() *cloudprovider.Offering {
	capacityType := e.CapacityType
	if capacityType == "" {
		capacityType = v1.CapacityTypeOnDemand
	}
	price := 0.025*e.Capacity.Cpu().AsApproximateFloat64() + 0.001*e.Capacity.Memory().AsApproximateFloat64()/1e9
	if capacityType == v1.CapacityTypeSpot {
		price /= 2
	}
	return &cloudprovider.Offering{
		Requirements: scheduling.NewRequirements(
			scheduling.NewRequirement(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, capacityType)),
		Price:     price,
		Available: true,
	}
}

// defaultRequirements is for an entry without a list of its own.
func defaultRequirements(offerings cloudprovider.Offerings) scheduling.Requirements {
	requirements := scheduling.NewRequirements(
		scheduling.NewRequirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, v1.ArchitectureAmd64),
		scheduling.NewRequirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, string(corev1.Linux)),
		scheduling.NewRequirement(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, valuesOf(offerings, v1.CapacityTypeLabelKey)...),
	)
	// A type whose offerings name no zone may be in any.
	if zones := valuesOf(offerings, corev1.LabelTopologyZone); len(zones) > 0 {
		requirements.Add(scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zones...))
	}
	return requirements
}

func valuesOf(offerings cloudprovider.Offerings, key string) []string {
	values := sets.New[string]()
	for _, offering := range offerings.Available() {
		if offering.Requirements.Has(key) {
			values.Insert(offering.Requirements.Get(key).Values()...)
		}
	}
	return sets.List(values)
}

// declareLabels tells Karpenter, whose sets are global, which labels this catalogue speaks of.
func declareLabels(types []*cloudprovider.InstanceType) {
	v1.WellKnownLabels = builtInLabels.Clone()
	cloudprovider.ReservationIDLabel = "karpenter.sh/reservation-id"
	for _, t := range types {
		v1.WellKnownLabels.Insert(t.Requirements.Keys().UnsortedList()...)
		for _, offering := range t.Offerings {
			for key := range offering.Requirements {
				v1.WellKnownLabels.Insert(key)
				if strings.HasSuffix(key, "reservation-id") {
					cloudprovider.ReservationIDLabel = key
				}
			}
		}
	}
	cloudprovider.ReservedCapacityLabels = sets.New(cloudprovider.ReservationIDLabel)
}
