// How long Karpenter takes to look at every node by itself.
package main

import (
	"time"

	karpenter "sigs.k8s.io/karpenter/pkg/controllers/disruption"
)

// passTime is how long one pass over all single nodes took.
type passTime struct {
	BuildMicros int64 `json:"buildMicros"`
	PassMicros  int64 `json:"passMicros"`
	// Own is the limit that Karpenter gives itself.
	OwnMicros int64 `json:"ownMicros"`
	// Done is false if it was given up.
	Done bool `json:"done"`
	// Found is whether a node can go: then the rest was not looked at.
	Found bool `json:"found"`
}

// timeSingleNode measures the pass with another limit than its own. The limit is looked at between nodes.
func timeSingleNode(in input, now time.Time, most time.Duration) (passTime, error) {
	started := time.Now()
	m, err := newMind(in, newPlayClock(now, true))
	if err != nil {
		return passTime{}, err
	}
	times := passTime{BuildMicros: time.Since(started).Microseconds()}
	own := karpenter.SingleNodeConsolidationTimeoutDuration
	times.OwnMicros = own.Microseconds()
	karpenter.SingleNodeConsolidationTimeoutDuration = most
	defer func() { karpenter.SingleNodeConsolidationTimeoutDuration = own }()
	for _, method := range m.methods() {
		if method.name != "single-node" {
			continue
		}
		started = time.Now()
		commands, err := m.run(method.Method, everyNode)
		took := time.Since(started)
		times.PassMicros, times.Found, times.Done = took.Microseconds(), len(commands) > 0, took < most
		return times, err
	}
	return times, nil
}
