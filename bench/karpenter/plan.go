// One plan: what the provisioner does in a pass, up to the moment it would write.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
)

// solveFor is how long the provisioner lets the solver run.
const solveFor = time.Minute

// plan plans once. The solver may run for so long; then it leaves the rest of the pods without a place.
func (w *world) plan(within time.Duration) (result, error) {
	started := time.Now()
	out := newResult()
	// The nodes come before the pods, as in the provisioner.
	nodes := w.cluster.DeepCopyNodes()
	if err := w.reject(&out); err != nil {
		return out, err
	}
	pods, err := w.provisioner.GetPendingPods(w.ctx)
	if err != nil {
		return out, err
	}
	leaving, err := nodes.Deleting().CurrentlyReschedulablePods(w.ctx, w.api, w.clock, silent{})
	if err != nil {
		return out, err
	}
	pods = append(pods, leaving...)
	if len(pods) == 0 {
		return out.finish(w, started, started), nil
	}
	uids := sets.New(lo.Map(leaving, func(p *corev1.Pod, _ int) types.UID { return p.UID })...)
	solver, err := w.provisioner.NewScheduler(w.ctx, pods, nodes.Active(), uids, w.solverOptions()...)
	if errors.Is(err, provisioning.ErrNodePoolsNotFound) {
		for _, pod := range pods {
			out.fail(pod, fmt.Errorf("no dynamic nodepools found"), false)
		}
		return out.finish(w, started, time.Now()), nil
	}
	if err != nil {
		return out, err
	}
	built := time.Now()
	ctx, cancel := context.WithTimeout(w.ctx, within)
	defer cancel()
	solved, err := solver.Solve(ctx, pods)
	if err != nil {
		return out, fmt.Errorf("solving: %w", err)
	}
	solved = solved.TruncateInstanceTypes(w.ctx, scheduling.MaxInstanceTypes)
	out.Stats.SolveMicros = time.Since(built).Microseconds()
	out.take(solved)
	return out.finish(w, started, built), nil
}

// solverOptions are the ones the provisioner uses.
func (w *world) solverOptions() []scheduling.Options {
	settings := options.FromContext(w.ctx)
	all := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback,
		scheduling.NumConcurrentReconciles(int(math.Ceil(float64(settings.CPURequests) / 1000.0))),
		scheduling.MinValuesPolicy(settings.MinValuesPolicy),
	}
	if settings.PreferencePolicy == options.PreferencePolicyIgnore {
		all = append(all, scheduling.IgnorePreferences)
	}
	return all
}

// reject names the pods that are refused before solving.
func (w *world) reject(out *result) error {
	pods, err := nodeutils.GetProvisionablePods(w.ctx, w.api)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if err := w.provisioner.Validate(w.ctx, pod); err != nil {
			out.fail(pod, err, true)
		}
	}
	return nil
}
