package canary_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/otlpsink"
	"github.com/interlock-go/interlock/otelx/otelxtest"
)

// TestMatrix: the secret of each slot goes in, and comes out nowhere but where
// the table of slots says why. With -run for one slot, the others count as open.
func TestMatrix(t *testing.T) { //nolint:paralleltest // standard output and the standard logger are captured
	var names []string
	for _, s := range slots() {
		names = append(names, s.name)
	}
	var outs []otelxtest.Outlet
	for _, o := range outlets() {
		outs = append(outs, otelxtest.Outlet{Name: o.name, Marker: o.marker})
	}
	m := otelxtest.NewMatrix(t, canary, names, outs)
	for i, s := range slots() { //nolint:paralleltest // as above
		protocol := otlpsink.Protocols()[i%2]
		t.Run(s.name, func(t *testing.T) {
			var w *world
			inside.take()
			stdout, stderr := capture(t, func() {
				w = newWorld(t, s.plant, protocol)
				w.live()
			})
			if len(canary.Scan("inside", inside.take())) == 0 {
				t.Error("the secret never went in")
			}
			if len(w.sink.Logs()) > 0 {
				t.Error("there are OTLP logs, which are no outlet of the table")
			}
			for _, o := range outlets() {
				data := stdout
				switch {
				case o.read != nil:
					data = o.read(w)
				case o.name == "process, standard error and log":
					data = stderr
				}
				if reason, ok := s.byDesign[o.name]; ok {
					m.ByDesign(s.name, o.name, reason, data)
				} else {
					m.Scan(s.name, o.name, data)
				}
			}
		})
	}
	t.Log("by design:\n" + strings.Join(m.Finish().Exceptions, "\n"))
}

// TestTwin: the scan catches the usual way of doing it in every outlet of the
// table, for the phrase and for the word, and nothing where there is nothing.
func TestTwin(t *testing.T) { //nolint:paralleltest // as TestMatrix
	for _, o := range outlets() { //nolint:paralleltest // as TestMatrix
		t.Run(o.name, func(t *testing.T) {
			if o.twin == nil {
				t.Fatal("the outlet has no twin: nothing shows that the scan sees it")
			}
			for name, secret := range map[string]string{"phrase": canary.Phrase(), "word": canary.Word()} {
				if len(canary.Scan(o.name, o.twin(t, secret))) == 0 {
					t.Errorf("the scan misses the %s", name)
				}
			}
			if f := canary.Scan(o.name, o.twin(t, "something else")); f != nil {
				t.Errorf("the scan finds what is not there: %v", f)
			}
		})
	}
}
