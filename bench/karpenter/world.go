// The cluster as Karpenter sees it: an API in memory, and the state its informers would have built.
package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
)

type world struct {
	ctx         context.Context
	api         client.Client
	cluster     *state.Cluster
	provisioner *provisioning.Provisioner
	provider    *provider
	clock       clock.Clock
	loading     time.Duration
	building    time.Duration
}

// input is what the files say.
type input struct {
	ctx     context.Context
	types   []*cloudprovider.InstanceType
	objects []client.Object
}

// readInput reads the files. The catalogue comes first: which labels a pool may name depends on it.
func readInput(a arguments) (input, error) {
	ctx, err := readSettings(injection.WithControllerName(context.Background(), "provisioner"), a.options)
	if err != nil {
		return input{}, err
	}
	types, err := readCatalogue(a.types)
	if err != nil {
		return input{}, err
	}
	objects, err := readObjects(a.objects, a.types, a.options)
	if err != nil {
		return input{}, err
	}
	return input{ctx, types, complete(ctx, objects)}, nil
}

// loadWorld reads the files and builds everything a plan is made from.
func loadWorld(a arguments) (*world, error) {
	started := time.Now()
	in, err := readInput(a)
	if err != nil {
		return nil, err
	}
	loading := time.Since(started)
	w, err := newWorld(in, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	w.loading = loading
	return w, nil
}

// newWorld builds everything a plan is made from.
func newWorld(in input, clk clock.Clock) (*world, error) {
	started := time.Now()
	w := &world{ctx: in.ctx, clock: clk, provider: newProvider(in.types, in.objects)}
	w.api = indexed{newAPI(in.objects), podsByNode(in.objects)}
	w.cluster = state.NewCluster(clk, w.api, w.provider)
	w.provisioner = provisioning.NewProvisioner(w.api, silent{}, w.provider, w.cluster, clk, nil, nil)
	if err := w.observe(); err != nil {
		return nil, err
	}
	w.building = time.Since(started)
	return w, nil
}

func newAPI(objects []client.Object) client.Client {
	return fake.NewClientBuilder().
		WithScheme(scheme.Scheme).
		WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string {
			return []string{o.(*corev1.Node).Spec.ProviderID}
		}).
		WithIndex(&v1.NodeClaim{}, "status.providerID", func(o client.Object) []string {
			return []string{o.(*v1.NodeClaim).Status.ProviderID}
		}).
		WithIndex(&storagev1.VolumeAttachment{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*storagev1.VolumeAttachment).Spec.NodeName}
		}).
		Build()
}

// observe does what the informers do when the controller starts.
func (w *world) observe() error {
	var claims v1.NodeClaimList
	var nodes corev1.NodeList
	var pods corev1.PodList
	var daemons appsv1.DaemonSetList
	for _, list := range []client.ObjectList{&claims, &nodes, &pods, &daemons} {
		if err := w.api.List(w.ctx, list); err != nil {
			return fmt.Errorf("listing objects: %w", err)
		}
	}
	for i := range claims.Items {
		w.cluster.UpdateNodeClaim(&claims.Items[i])
	}
	for i := range nodes.Items {
		if err := w.cluster.UpdateNode(w.ctx, &nodes.Items[i]); err != nil {
			return fmt.Errorf("node %s: %w", nodes.Items[i].Name, err)
		}
	}
	for i := range pods.Items {
		// A pod may be bound to a node that the files do not have; an informer would try again for ever.
		if err := w.cluster.UpdatePod(w.ctx, &pods.Items[i]); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("pod %s/%s: %w", pods.Items[i].Namespace, pods.Items[i].Name, err)
		}
	}
	for i := range daemons.Items {
		if err := w.cluster.UpdateDaemonSet(w.ctx, &daemons.Items[i]); err != nil {
			return fmt.Errorf("daemonset %s: %w", daemons.Items[i].Name, err)
		}
	}
	return nil
}

// indexed knows the pods of each node. They are asked for once for every node, and the API in memory would copy all pods of
// the cluster each time.
type indexed struct {
	client.Client
	pods map[string][]*corev1.Pod
}

func podsByNode(objects []client.Object) map[string][]*corev1.Pod {
	all := map[string][]*corev1.Pod{}
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			all[pod.Spec.NodeName] = append(all[pod.Spec.NodeName], pod)
		}
	}
	return all
}

// Get asks for volumes without a namespace. Karpenter names that of the pod, which an API server passes over for what is in none;
// the API in memory would find nothing, and the pod would be planned without its volumes.
func (i indexed) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if _, isVolume := object.(*corev1.PersistentVolume); isVolume {
		key.Namespace = ""
	}
	return i.Client.Get(ctx, key, object, opts...)
}

// List answers the question for the pods of one node; all others go on.
func (i indexed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	pods, isPods := list.(*corev1.PodList)
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	if !isPods || asked.FieldSelector == nil || len(asked.FieldSelector.Requirements()) != 1 || asked.LabelSelector != nil || asked.Namespace != "" {
		return i.Client.List(ctx, list, opts...)
	}
	node, isByNode := asked.FieldSelector.RequiresExactMatch("spec.nodeName")
	if !isByNode {
		return i.Client.List(ctx, list, opts...)
	}
	pods.Items = nil
	for _, pod := range i.pods[node] {
		pods.Items = append(pods.Items, *pod.DeepCopy())
	}
	return nil
}
