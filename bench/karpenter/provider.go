// The cloud provider that Karpenter asks: it has a catalogue, and makes nothing.
package main

import (
	"context"
	"errors"
	"slices"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/events"
)

var errPlansOnly = errors.New("this provider only plans")

type provider struct {
	types   []*cloudprovider.InstanceType
	classes []status.Object
}

// newProvider counts every kind of NodeClass that the objects refer to as managed.
func newProvider(types []*cloudprovider.InstanceType, objects []client.Object) *provider {
	p := &provider{types: types}
	seen := map[schema.GroupKind]bool{}
	for _, object := range objects {
		var kind schema.GroupKind
		switch o := object.(type) {
		case *v1.NodePool:
			kind = o.Spec.Template.Spec.NodeClassRef.GroupKind()
		case *v1.NodeClaim:
			kind = o.Spec.NodeClassRef.GroupKind()
		default:
			continue
		}
		if !seen[kind] {
			seen[kind] = true
			p.classes = append(p.classes, newNodeClass(kind))
		}
	}
	return p
}

func (p *provider) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return slices.Clone(p.types), nil
}

func (p *provider) GetSupportedNodeClasses() []status.Object { return p.classes }

func (p *provider) Name() string { return "tenon-bench" }

func (p *provider) Create(context.Context, *v1.NodeClaim) (*v1.NodeClaim, error) {
	return nil, errPlansOnly
}
func (p *provider) Delete(context.Context, *v1.NodeClaim) error         { return errPlansOnly }
func (p *provider) Get(context.Context, string) (*v1.NodeClaim, error)  { return nil, errPlansOnly }
func (p *provider) List(context.Context) ([]*v1.NodeClaim, error)       { return nil, errPlansOnly }
func (p *provider) Reboot(context.Context, *v1.NodeClaim, string) error { return errPlansOnly }
func (p *provider) RepairPolicies() []cloudprovider.RepairPolicy        { return nil }
func (p *provider) IsDrifted(context.Context, *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	return "", errPlansOnly
}

// nodeClass is a NodeClass of any kind; only its kind matters here.
type nodeClass struct{ *unstructured.Unstructured }

func newNodeClass(kind schema.GroupKind) nodeClass {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind.WithVersion("v1"))
	return nodeClass{object}
}

func (nodeClass) GetConditions() []status.Condition { return nil }
func (nodeClass) SetConditions([]status.Condition)  {}
func (c nodeClass) StatusConditions(...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(c, status.WithObservedOnly())
}

// silent takes Karpenter's events and tells nobody.
type silent struct{}

func (silent) Publish(...events.Event) {}
