package catalog_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/micro"
	"github.com/interlock-go/interlock/benchmarks/internal/peers"
	"github.com/interlock-go/interlock/middleware"
)

// isGated says which rows check a ledger of ten receipts for each effect.
func isGated(name string) bool {
	for _, part := range []string{"micro/tool/guarded/strict", "micro/tool/layer/gate", "micro/admission/check-10", "peers/gate/naive-10", "peers/gate/interlock-10"} {
		if rest, ok := strings.CutPrefix(name, part); ok && !strings.HasPrefix(rest, "0") && name != "micro/tool/layer/gate-alone" {
			return true
		}
	}

	return false
}

// After somebody stopped everything, each row with a gate is refused: what it
// measures is a check, and not something that says yes.
func TestGatesRefuse(t *testing.T) {
	t.Parallel()
	gated := 0
	for i, r := range append(micro.Rows(fixture.NewLedgers()), peers.Rows(fixture.NewLedgers())...) {
		if !isGated(r.Name) {
			continue
		}
		gated++
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			l := fixture.NewLedgers() // of its own, because it is stopped
			own := append(micro.Rows(l), peers.Rows(l)...)[i]
			w, err := own.Prepare()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Release()
			if err := w.Run(2); err != nil {
				t.Fatal(err)
			}
			ledger, err := l.Get(10)
			if err != nil {
				t.Fatal(err)
			}
			defer ledger.Release()
			if err := ledger.Stop(); err != nil {
				t.Fatal(err)
			}
			err = w.Run(1)
			if own.Name == "peers/gate/naive-10" {
				if err == nil {
					t.Error("the effect was admitted")
				}

				return
			}
			if got := middleware.ReasonOf(err); got != middleware.ReasonOf(admission.ErrStopped) {
				t.Errorf("%v", err)
			}
		})
	}
	if gated < 12 {
		t.Errorf("only %d rows with a gate", gated)
	}
}

// Rows that are to compare ledgers of different lengths do have them.
func TestLedgerLengths(t *testing.T) {
	t.Parallel()
	l := fixture.NewLedgers()
	for _, n := range []uint64{2, 10, 1_000} {
		ledger, err := l.Get(n)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ledger.Store()
		if err != nil {
			t.Fatal(err)
		}
		v, err := admission.Verify(t.Context(), s)
		if err != nil || v.Head.Generation != n {
			t.Errorf("%+v, %v", v, err)
		}
		again, err := l.Get(n)
		if err != nil || again != ledger {
			t.Errorf("made twice, %v", err)
		}
		again.Release()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		ledger.Release()
		if _, err := ledger.Store(); err == nil {
			t.Error("the ledger outlives its last user")
		}
	}
}

// A tool that is refused, and one that gives something else, are not taken for
// work.
func TestWorkIsChecked(t *testing.T) {
	t.Parallel()
	if err := fixture.Shipped("The tool failed.", nil); err == nil {
		t.Error("a sentence of refusal passes for a result")
	}
	if err := fixture.Shipped("", admission.ErrStopped); err == nil {
		t.Error("an error passes for a result")
	}
	m := fixture.NewModel("primary ")
	resp, err := m.GenerateContent(t.Context(), nil)
	if fixture.Answered(resp, err, "primary ") != nil || fixture.Answered(resp, err, "backup ") == nil {
		t.Error("the answer of another model passes")
	}
	m.SetDown(true)
	resp, err = m.GenerateContent(t.Context(), nil)
	if fixture.Answered(resp, err, "primary ") == nil {
		t.Error("no answer passes")
	}
}
