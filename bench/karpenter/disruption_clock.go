// The time that disruption is decided at.
package main

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// playClock stands still, or goes on with the real time from a moment of our choice. Whoever waits is woken at once, and that much
// later.
type playClock struct {
	clock.Clock
	mu      sync.Mutex
	moment  time.Time
	runs    bool
	started time.Time
}

func newPlayClock(now time.Time, runs bool) *playClock {
	return &playClock{Clock: clock.RealClock{}, moment: now, runs: runs, started: time.Now()}
}

func (c *playClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs {
		return c.moment.Add(time.Since(c.started))
	}
	return c.moment
}

func (c *playClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *playClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	c.moment = c.moment.Add(d)
	c.mu.Unlock()
	woken := make(chan time.Time, 1)
	woken <- c.Now()
	return woken
}

// set says what time it is.
func (c *playClock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moment, c.started = now, time.Now()
}
