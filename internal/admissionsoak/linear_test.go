//go:build linux

package admissionsoak_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// ledgerState is what the specification says a store is: a number that each
// transition raises, and the state of each scope.
type ledgerState struct {
	generation uint64
	global     string
	own        [2]string // "": none
}

// said is what an operation answered.
type said struct {
	code       string
	generation uint64
	preview    uint64 // of a check: the generation of its preview
}

func scopes() []string { return []string{"global", refunds.String(), billing.String()} }

func (s *ledgerState) of(scope string) string {
	for i, name := range scopes()[1:] {
		if name == scope && s.global != "admission_stopped" && s.own[i] != "" {
			return s.own[i]
		}
	}

	return s.global
}

// record is a transition.
func (s *ledgerState) record(scope, state string) {
	s.generation++
	for i, name := range scopes()[1:] {
		if name == scope {
			s.own[i] = state

			return
		}
	}
	s.global = state
	if state != "admission_stopped" {
		return
	}
	for i, own := range s.own { // a global stop forgets enables
		if own == "admission_enabled" {
			s.own[i] = ""
		}
	}
}

// step is the rule of one operation: whether it may answer this in state s, and
// what the state is afterwards.
func step(state, input, output any) (bool, any) {
	s, o, r := state.(ledgerState), input.(order), output.(said)
	if r.code == "store_busy" {
		return true, s // at any time, and nothing changed
	}
	switch o.Op {
	case "stop":
		s.record(o.Scope, "admission_stopped")

		return r.code == "ok" && r.generation == s.generation, s
	case "enable":
		if r.code == "stale_generation" { // something was recorded while it looked: at any time
			return true, s
		}
		if o.Scope != "global" && s.global == "admission_stopped" {
			return r.code == "admission_stopped", s
		}
		s.record(o.Scope, "admission_enabled")

		return r.code == "ok" && r.generation == s.generation, s
	case "status":
		return r.code == s.of(o.Scope) && r.generation == s.generation, s
	case "preview":
		if now := s.of(o.Scope); now != "admission_enabled" {
			return r.code == now, s
		}

		return r.code == "ok" && r.generation == s.generation, s
	case "check":
		switch now := s.of(o.Scope); {
		case now != "admission_enabled":
			return r.code == now, s
		case r.preview != s.generation:
			return r.code == "stale_generation", s
		}

		return r.code == "ok", s
	}

	return false, s
}

func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return ledgerState{generation: 2, global: "admission_enabled"} },
		Step: step,
	}
}

// TestLinearizable: what concurrent operators and checkers of several processes
// were told could have been told one after the other, each between its begin and
// its end.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	histories, processes, each := pick(2, 20), pick(4, 8), pick(40, 120)
	total := map[string]int{}
	for round := range histories {
		history := record(t, processes, each, uint64(round))
		result, _ := porcupine.CheckOperationsVerbose(model(), history, time.Minute)
		if result != porcupine.Ok {
			t.Fatalf("round %d: %s", round, result)
		}
		for _, op := range history {
			total[op.Input.(order).Op+" "+op.Output.(said).code]++
		}
	}
	t.Log(total)
	refused := total["check admission_stopped"] + total["check stale_generation"]
	if total["stop ok"] == 0 || total["enable ok"] == 0 || total["check ok"] == 0 || refused == 0 {
		t.Error("the histories show little")
	}
}

// record lets processes act at random at once.
func record(t *testing.T, processes, each int, seed uint64) []porcupine.Operation {
	t.Helper()
	dir := newStore(t)
	if _, err := openController(t, dir).Enable(t.Context(), global); err != nil { // else there is little to see
		t.Fatal(err)
	}
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	for id := range processes {
		role := "agent"
		if id%4 == 3 {
			role = "checker"
		}
		p := start(t, role, dir)
		random := rand.New(rand.NewPCG(seed, uint64(id)))
		wg.Go(func() {
			defer p.end()
			var scope string
			var preview uint64
			for range each {
				o := order{Op: "check", Scope: scope}
				switch n := random.IntN(100); {
				case id%2 == 0 && n < 12:
					o = order{"stop", scopes()[random.IntN(3)]}
				case id%2 == 0 && n < 40:
					o = order{"enable", scopes()[random.IntN(3)]}
				case n < 55:
					o = order{"status", scopes()[random.IntN(3)]}
				case n < 75 || scope == "":
					o = order{"preview", scopes()[1+random.IntN(2)]}
				}
				var r report
				if p.in.Encode(o) != nil || p.out.Decode(&r) != nil {
					t.Error("a process is gone")

					return
				}
				out := said{code: r.Code, generation: r.Generation}
				switch {
				case o.Op == "check":
					out.generation, out.preview = 0, preview
				case o.Op == "preview" && r.Code == "ok":
					scope, preview = o.Scope, r.Generation
				case o.Op == "preview":
					scope = "" // none is kept
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: id, Input: o, Call: r.Start, Output: out, Return: r.End})
				mu.Unlock()
			}
		})
	}
	wg.Wait()

	return history
}

// TestModel: the model tells a wrong history from a right one.
func TestModel(t *testing.T) {
	t.Parallel()
	w := refunds.String()
	right := []porcupine.Operation{
		{ClientId: 0, Input: order{"enable", "global"}, Output: said{code: "ok", generation: 3}, Call: 1, Return: 2},
		{ClientId: 1, Input: order{"preview", w}, Output: said{code: "ok", generation: 3}, Call: 3, Return: 4},
		{ClientId: 1, Input: order{"check", w}, Output: said{code: "ok", preview: 3}, Call: 5, Return: 8},
		{ClientId: 0, Input: order{"stop", "global"}, Output: said{code: "ok", generation: 4}, Call: 6, Return: 10},
		{ClientId: 1, Input: order{"check", w}, Output: said{code: "ok", preview: 3}, Call: 9, Return: 11},
		{ClientId: 1, Input: order{"check", w}, Output: said{code: "admission_stopped", preview: 3}, Call: 12, Return: 13},
		{ClientId: 0, Input: order{"enable", w}, Output: said{code: "admission_stopped"}, Call: 14, Return: 15},
	}
	if !porcupine.CheckOperations(model(), right) {
		t.Fatal("a right history is refused")
	}
	for name, change := range map[string]func(h []porcupine.Operation){
		"admitted after the stop returned": func(h []porcupine.Operation) { h[5].Output = said{code: "ok", preview: 3} },
		"refused before the stop began": func(h []porcupine.Operation) {
			h[2].Return, h[2].Output = 5, said{code: "admission_stopped", preview: 3}
		},
		"a generation left out":       func(h []porcupine.Operation) { h[3].Output = said{code: "ok", generation: 5} },
		"enabled below a global stop": func(h []porcupine.Operation) { h[6].Output = said{code: "ok", generation: 5} },
		"an old status": func(h []porcupine.Operation) {
			h[5].Input, h[5].Output = order{"status", "global"}, said{code: "admission_enabled", generation: 3}
		},
	} {
		h := append([]porcupine.Operation(nil), right...)
		change(h)
		if porcupine.CheckOperations(model(), h) {
			t.Errorf("%s: accepted", name)
		}
	}
}
