//go:build linux

package admissionsoak_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/middleware"
)

// TestStarvation: a process holds SHARED on a file for ever. A stop says that it
// was not recorded and that admission may still be open; a forced one stops every
// process.
func TestStarvation(t *testing.T) {
	t.Parallel()
	dir := newStore(t)
	operator := openController(t, dir)
	if _, err := operator.Enable(t.Context(), global); err != nil {
		t.Fatal(err)
	}
	agents := []*process{start(t, "agent", dir), start(t, "checker", dir)}
	workflow := refunds.String()
	for _, a := range agents {
		a.do(t, "preview", workflow)
	}
	reader := start(t, "reader", dir)
	var held report
	try(reader.out.Decode(&held))

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := operator.Stop(ctx, global); !errors.Is(err, admission.ErrStoreBusy) || time.Since(began) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	for _, a := range agents {
		if r := a.do(t, "check", workflow); r.Code != "ok" {
			t.Errorf("the stop was not recorded, and yet %q", r.Code)
		}
	}
	ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	st, err := operator.ForceStop(ctx, global)
	if err != nil || st.State != admission.Stopped || st.Reason != middleware.ReasonUntrustedState || st.Generation != 2 {
		t.Errorf("%+v, %v", st, err)
	}
	agents = append(agents, start(t, "agent", dir))
	for _, a := range agents {
		for range 3 {
			if r := a.do(t, "check", workflow); r.Code != "untrusted_state" {
				t.Errorf("%q after a forced stop", r.Code)
			}
		}
	}
	reader.end()
	if _, err := operator.Enable(t.Context(), global); !errors.Is(err, admission.ErrUntrustedState) {
		t.Errorf("enabled again: %v", err)
	}

	// By hand only.
	anchor := config(dir).Anchor
	try(os.Rename(anchor+".stopped", anchor))
	if _, err := operator.Stop(t.Context(), global); err != nil {
		t.Error(err)
	}
	for _, a := range agents {
		if r := a.do(t, "check", workflow); r.Code != "admission_stopped" {
			t.Errorf("%q after the stop", r.Code)
		}
	}
}
