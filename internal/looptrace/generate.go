package looptrace

import (
	"fmt"
)

// HeldOutSeed is the seed of the part of the corpus that is not built with.
const HeldOutSeed = 20260704

// perShape is how many traces of each shape are on each side of its threshold.
const perShape = 3

// Lengths of generated traces.
const (
	minSteps = 4
	maxSteps = 80
)

// shape makes a trace of a kind on one side of its threshold: a loop that goes
// on just long enough, or honest work that stops just before.
type shape struct {
	name  string
	draft func(r *random, id string, loop bool) *Trace
}

// shapes returns all of them.
func shapes() []shape {
	return []shape{
		{"reads", repeatedReads}, {"failures", repeatedFailures}, {"effects", repeatedEffects},
		{"spelling", otherSpelling}, {"volatile", volatileAnswers}, {"cycle", rounds}, {"variant", roundsWithOneOther},
		{"stagnation", editsAndChecks}, {"moving", movingErrors}, {"drift", drifting}, {"batch", batches},
		{"paging", pages}, {"waiting", waiting}, {"final", finalStates}, {"rotation", rotation}, {"refused", refusals},
		{"unknown", inventions}, {"unread", unreadAnswers}, {"equal", equalAnswers}, {"parallel", parallelSets},
		{"recheck", rechecks}, {"signal", signals}, {"outage", outages}, {"long", longWork}, {"explained", explained},
		{"links", links}, {"jitter", jitteredRounds}, {"shell", shellWaits}, {"chat", chats}, {"text", textual},
	}
}

// Generate returns the near misses of a seed: for each threshold as many loops
// as honest traces, close to it on either side. One seed gives one corpus. The
// numbers come from the rule of the labels in the README.md of the corpus.
func Generate(seed uint64) []*Trace {
	r := &random{state: seed}
	var all []*Trace
	for i := range perShape {
		for _, s := range shapes() {
			for _, loop := range []bool{true, false} {
				side := "under"
				if loop {
					side = "over"
				}
				id := fmt.Sprintf("g%d-%s-%s", i+1, s.name, side)
				t := s.draft(r, id, loop)
				for len(t.Steps) < minSteps || len(t.Steps) > maxSteps {
					t = s.draft(r, id, loop)
				}
				all = append(all, t)
			}
		}
	}

	return all
}
