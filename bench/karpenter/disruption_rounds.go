// Rounds: what is decided is done at once, the time goes on, and Karpenter decides again.
package main

import (
	"time"
)

// playFiles reads the files once and plays the rounds for each run.
func (a arguments) playFiles() ([]any, error) {
	in, err := readInput(a)
	if err != nil {
		return nil, err
	}
	now, err := a.moment()
	if err != nil {
		return nil, err
	}
	if a.timePass > 0 {
		timed, err := timeSingleNode(in, now, a.timePass)
		return []any{timed}, err
	}
	var all []any
	for range max(a.runs, 1) {
		report, err := play(in, now, a.rounds)
		if err != nil {
			return nil, err
		}
		all = append(all, disruptionResult{report})
	}
	return all, nil
}

func play(in input, now time.Time, most int) (disruptionReport, error) {
	started := time.Now()
	report := disruptionReport{Now: now.UTC().Format(time.RFC3339), Rounds: []round{}}
	in.objects = copies(in.objects)
	clk := newPlayClock(now, false)
	for {
		m, err := newMind(in, clk)
		if err != nil {
			return report, err
		}
		nodes, cost := m.totals()
		if len(report.Rounds) == 0 {
			report.Stats.Nodes, report.Stats.Cost = nodes, cost
		}
		report.Stats.NodesAfter, report.Stats.CostAfter = nodes, cost
		if len(report.Rounds) == most && most > 1 {
			break
		}
		found, err := m.decide()
		if err != nil {
			return report, err
		}
		if len(found.commands) == 0 {
			report.Stats.Settled = true
			break
		}
		var this round
		for _, c := range found.commands {
			this.Commands = append(this.Commands, newCommand(found.method, c))
		}
		if !launchable(this) {
			// In a cluster the launch fails, and Karpenter tries the same for ever.
			report.Stats.Stuck = true
			break
		}
		report.Rounds = append(report.Rounds, this)
		in.objects = carriedOut(in, this, len(report.Rounds), clk.Now())
		clk.set(clk.Now().Add(patience(in.objects)))
		if most <= 1 {
			break
		}
	}
	report.count(time.Since(started))
	return report, nil
}

// launchable says whether every replacement has an offering. Of a node of a static NodePool that is not asked.
func launchable(done round) bool {
	for _, c := range done.Commands {
		for _, replacement := range c.Replacements {
			if replacement.Offering == nil && len(replacement.InstanceTypes) > 0 {
				return false
			}
		}
	}
	return true
}
