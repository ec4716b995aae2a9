//go:build linux

package cli_test

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// place makes the helpers of the other process tests fit.
func (shelf) place() place { return place{} }

// TestRacingDecisions: several programs decide one handoff while others deliver.
// One decides, and nothing is lost.
func TestRacingDecisions(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const programs, deliveries = 5, 20
	codes := make(chan any, programs)
	var wg sync.WaitGroup
	for i := range programs {
		wg.Go(func() {
			decision := [...]string{"dismissed", "abort_run", "review_tool_failure"}[i%3]
			cmd := process(t.Context(), s.place(), s.decide(s.waiting, decision)...)
			cmd.Env = append(cmd.Env, "INTERLOCK_HANDOFFS="+s.path)
			codes <- finish(t, cmd).object["reason_code"]
		})
	}
	wg.Go(func() {
		for range deliveries {
			if _, err := deliver(s.path, "permission_denial", time.Now()); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	close(codes)
	count := map[any]int{}
	for code := range codes {
		count[code]++
	}
	if count["ok"] != 1 || count["handoff_decided"] != programs-1 {
		t.Error(count)
	}
	code, objects := s.list(t)
	last := objects[len(objects)-1]
	if code != 0 || last["waiting"] != float64(deliveries) || last["decided"] != float64(1) || last["expired"] != float64(1) || last["lines"] != float64(deliveries+3) {
		t.Errorf("exit %d, %v", code, last)
	}
}

// TestHandoffsOfAnotherUser: what is not this user's is not read.
func TestHandoffsOfAnotherUser(t *testing.T) {
	t.Parallel()
	p := openPlace(t)
	s := newShelf(t)
	data, err := os.ReadFile(s.path)
	must(t, err)
	s.path = p.state
	must(t, os.WriteFile(s.path, data, 0o600))
	if os.Geteuid() != 0 {
		must(t, os.Chmod(s.path, 0))
	}
	for _, args := range [][]string{{"handoffs", "list"}, {"handoffs", "show", s.waiting}, s.decide(s.waiting, "dismissed")} {
		cmd := process(t.Context(), s.place(), args...)
		cmd.Env = append(cmd.Env, "INTERLOCK_HANDOFFS="+s.path)
		asNobody(cmd)
		if r := finish(t, cmd).want(t, 1, "queue_unreadable"); r.stdout != "" {
			t.Error(r)
		}
	}
	if after, err := os.ReadFile(s.path); os.Geteuid() == 0 && (err != nil || string(after) != string(data)) {
		t.Errorf("it changed: %v", err)
	}
}

// TestHandoffsOnAFullDisk: at every limit of the file's size what was there is
// read, and the decision is made once there is room.
func TestHandoffsOnAFullDisk(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	before, err := os.ReadFile(s.path)
	must(t, err)
	failed := 0
	for _, room := range []int{0, 1, 20, 100, 150} {
		cmd := process(t.Context(), s.place(), s.decide(s.waiting, "abort_run")...)
		cmd.Env = append(cmd.Env, "INTERLOCK_HANDOFFS="+s.path, sizeLimit+"="+strconv.Itoa(len(before)+room))
		finish(t, cmd).want(t, 1, "queue_failed")
		after, err := os.ReadFile(s.path)
		must(t, err)
		if !bytes.HasPrefix(after, before) {
			t.Fatalf("room %d: something is gone", room)
		}
		if len(after) > len(before) {
			failed++
			if code, objects := s.list(t); code != 1 || objects[2]["cut"] != true || objects[2]["waiting"] != float64(1) {
				t.Errorf("room %d: exit %d, %v", room, code, objects)
			}
		}
	}
	run(t, s.env(), s.decide(s.waiting, "abort_run")...).want(t, 0, "ok")
	code, objects := s.list(t, "--only", "decided")
	if code != 1 || failed < 2 || len(objects) != 2 || objects[0]["decision"] != "abort_run" || objects[1]["damaged"] != float64(failed) || objects[1]["cut"] != false {
		t.Errorf("exit %d, %d failed, %v", code, failed, objects)
	}
}
