package escalation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func golden(tb testing.TB, c escalation.Class) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "handoff_"+c.String()+".json"))
	if err != nil {
		tb.Fatal(err)
	}

	return string(data)
}

// The table of the specification, spelled out once more.
var routes = map[escalation.Class][]string{
	uncertainty: {"low_confidence", "review_evidence", "review_evidence", "abort_run"},
	permission:  {"human_gate", "decide_next_step", "recheck_permissions", "abort_run"},
	toolFailure: {"safety_review", "assess_safety", "review_tool_failure", "abort_run"},
}

func TestHandoffGolden(t *testing.T) {
	t.Parallel()
	for class, want := range routes {
		_, h := tripped(t, class)
		data, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if string(data) != golden(t, class) {
			t.Errorf("%v:\n got %s\nwant %s", class, data, golden(t, class))
		}
		got := []string{h.ReasonCode().String(), h.RequestedDecision().String()}
		for _, a := range h.RecoveryActions() {
			got = append(got, a.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", class, got, want)
		}
		parsed, err := escalation.ParseHandoff(data, at)
		if err != nil {
			t.Fatalf("%v: %v", class, err)
		}
		if parsed.RunID() != h.RunID() || parsed.WorkflowID() != h.WorkflowID() || parsed.Class() != class ||
			parsed.IssuedAt() != at || parsed.ExpiresAt() != at.Add(30*time.Minute) ||
			!slices.Equal(parsed.StepDigests(), h.StepDigests()) {
			t.Errorf("%v: the round trip changed it", class)
		}
	}
}

func TestHandoffZero(t *testing.T) {
	t.Parallel()
	var h escalation.Handoff
	if data, err := json.Marshal(h); err == nil {
		t.Errorf("the zero handoff renders as %s", data)
	}
	if _, err := h.MarshalJSON(); !errors.Is(err, escalation.ErrInvalidHandoff) {
		t.Errorf("%v", err)
	}
	if !h.IsZero() || h.ReasonCode() != 0 || h.RequestedDecision().String() != "invalid" || len(h.RecoveryActions()) != 0 ||
		!h.ExpiresAt().IsZero() || escalation.RecoveryAction(0).String() != "invalid" {
		t.Error("the zero handoff says something")
	}
	_, full := tripped(t, toolFailure)
	data, _ := json.Marshal(full)
	if err := json.Unmarshal(data, &h); err == nil || !h.IsZero() {
		t.Errorf("json.Unmarshal made a handoff without a clock: %v", err)
	}
}

func TestHandoffPrintsNoIdentifiers(t *testing.T) {
	t.Parallel()
	_, h := tripped(t, toolFailure)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
		if s := fmt.Sprintf(verb, h); s != "escalation.Handoff(tool_failure)" {
			t.Errorf("%s: %s", verb, s)
		}
	}
}

func TestParseHandoffDefects(t *testing.T) {
	t.Parallel()
	good := golden(t, toolFailure)
	sum := digest(1)
	swap := func(old, replacement string) string {
		t.Helper()
		if strings.Count(good, old) != 1 {
			t.Fatalf("%q is not once in the golden file", old)
		}

		return strings.Replace(good, old, replacement, 1)
	}
	other := golden(t, permission)
	for name, c := range map[string]struct {
		data string
		want escalation.Defect
	}{
		"empty":                {"", escalation.DefectMalformed},
		"null":                 {"null", escalation.DefectMalformed},
		"list":                 {"[]", escalation.DefectMalformed},
		"empty object":         {"{}", escalation.DefectMissingField},
		"cut":                  {good[:len(good)-1], escalation.DefectMalformed},
		"cut in a value":       {good[:40], escalation.DefectMalformed},
		"cut in a key":         {good[:5], escalation.DefectMalformed},
		"comma at the end":     {strings.TrimSuffix(good, "}") + ",}", escalation.DefectMalformed},
		"oversize":             {good + strings.Repeat(" ", escalation.MaxHandoffBytes), escalation.DefectOversize},
		"unknown field":        {swap(`"run_id"`, `"approved":true,"run_id"`), escalation.DefectUnknownField},
		"field in other case":  {swap(`"run_id"`, `"Run_ID"`), escalation.DefectUnknownField},
		"missing field":        {swap(`"evidence":[],`, ``), escalation.DefectMissingField},
		"duplicate field":      {swap(`"evidence":[],`, `"evidence":[],"evidence":[],`), escalation.DefectDuplicateField},
		"newline behind":       {good + "\n", escalation.DefectTrailingData},
		"two objects":          {good + good, escalation.DefectTrailingData},
		"space before":         {" " + good, escalation.DefectNotCanonical},
		"space inside":         {swap(`"evidence":[]`, `"evidence": []`), escalation.DefectNotCanonical},
		"other order":          {strings.TrimSuffix(swap(`"evidence":[],`, ``), "}") + `,"evidence":[]}`, escalation.DefectNotCanonical},
		"escaped":              {swap(`"tool_failure"`, `"tool\u005ffailure"`), escalation.DefectNotCanonical},
		"escaped key":          {swap(`"run_id"`, `"run\u005fid"`), escalation.DefectNotCanonical},
		"evidence":             {swap(`"evidence":[]`, `"evidence":["x"]`), escalation.DefectInvalidValue},
		"evidence null":        {swap(`"evidence":[]`, `"evidence":null`), escalation.DefectInvalidValue},
		"list as text":         {swap(`"evidence":[]`, `"evidence":"[]"`), escalation.DefectInvalidValue},
		"list of numbers":      {swap(`"evidence":[]`, `"evidence":[1]`), escalation.DefectInvalidValue},
		"text as number":       {swap(`"tool_failure"`, `3`), escalation.DefectInvalidValue},
		"schema":               {swap(`interlock.handoff.v1`, `interlock.handoff.v2`), escalation.DefectInvalidValue},
		"run":                  {swap(`"run_ab`, `"RUN_ab`), escalation.DefectInvalidValue},
		"workflow":             {swap(`"workflow:`, `"tool:`), escalation.DefectInvalidValue},
		"unknown class":        {swap(`"tool_failure"`, `"success"`), escalation.DefectInvalidValue},
		"invalid class":        {swap(`"tool_failure"`, `"invalid"`), escalation.DefectInvalidValue},
		"no digests":           {swap(`["`+sum+`"]`, `[]`), escalation.DefectInvalidValue},
		"upper case digest":    {swap(sum, strings.ToUpper(sum)), escalation.DefectInvalidValue},
		"null digest":          {swap(`["`+sum+`"]`, `[null]`), escalation.DefectInvalidValue},
		"33 digests":           {swap(`["`+sum+`"]`, `["`+strings.Repeat(sum+`","`, 32)+sum+`"]`), escalation.DefectInvalidValue},
		"issued with zone":     {swap(`05:06:07Z`, `05:06:07+00:00`), escalation.DefectInvalidValue},
		"issued with fraction": {swap(`05:06:07Z`, `05:06:07.5Z`), escalation.DefectInvalidValue},
		"issued with .0":       {swap(`05:06:07Z`, `05:06:07.0Z`), escalation.DefectNotCanonical},
		"issued in year 0":     {swap(`2026-03-04T05:06:07Z`, `0000-03-04T05:06:07Z`), escalation.DefectInvalidValue},
		"longer validity":      {swap(`05:36:07Z`, `06:36:07Z`), escalation.DefectInvalidValue},
		"expiry malformed":     {swap(`05:36:07Z`, `tomorrow`), escalation.DefectInvalidValue},
		"other reason":         {swap(`"safety_review"`, `"human_gate"`), escalation.DefectWrongCombination},
		"other decision":       {swap(`"assess_safety"`, `"review_evidence"`), escalation.DefectWrongCombination},
		"other action":         {swap(`"review_tool_failure"`, `"recheck_permissions"`), escalation.DefectWrongCombination},
		"granting action":      {swap(`"abort_run"`, `"resume_run"`), escalation.DefectWrongCombination},
		"one action":           {swap(`,"abort_run"`, ``), escalation.DefectWrongCombination},
		"three actions":        {swap(`"abort_run"`, `"abort_run","abort_run"`), escalation.DefectWrongCombination},
		"actions swapped":      {swap(`"review_tool_failure","abort_run"`, `"abort_run","review_tool_failure"`), escalation.DefectWrongCombination},
		"other class":          {strings.Replace(other, `"permission_denial"`, `"tool_failure"`, 1), escalation.DefectWrongCombination},
	} {
		h, err := escalation.ParseHandoff([]byte(c.data), at)
		var e *escalation.HandoffError
		if !errors.As(err, &e) || e.Defect() != c.want || !errors.Is(err, escalation.ErrInvalidHandoff) || !h.IsZero() {
			t.Errorf("%s: %v, %v; want %v", name, h, err, c.want)
		}
	}
}

func TestParseHandoffTimes(t *testing.T) {
	t.Parallel()
	data := []byte(golden(t, uncertainty))
	for name, c := range map[string]struct {
		now  time.Time
		want error
	}{
		"at issue":            {at, nil},
		"in another zone":     {at.In(time.FixedZone("east", 7200)), nil},
		"last instant":        {at.Add(30*time.Minute - 1), nil},
		"at expiry":           {at.Add(30 * time.Minute), escalation.ErrHandoffExpired},
		"long after":          {at.AddDate(100, 0, 0), escalation.ErrHandoffExpired},
		"5 minutes ahead":     {at.Add(-5 * time.Minute), nil},
		"more than 5 minutes": {at.Add(-5*time.Minute - 1), escalation.ErrHandoffFuture},
		"no clock":            {time.Time{}, escalation.ErrHandoffFuture},
	} {
		h, err := escalation.ParseHandoff(data, c.now)
		if !errors.Is(err, c.want) || h.IsZero() != (c.want != nil) {
			t.Errorf("%s: %v, %v; want %v", name, h, err, c.want)
		}
	}
}

func TestDefectsHaveNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"invalid": true}
	for d := escalation.DefectOversize; d <= escalation.DefectDecided; d++ {
		if seen[d.String()] {
			t.Errorf("defect %d is called %s", d, d)
		}
		seen[d.String()] = true
	}
	if escalation.Defect(0).String() != "invalid" || escalation.Defect(200).String() != "invalid" {
		t.Error("values outside of the set have names")
	}
}

func TestStepDigest(t *testing.T) {
	t.Parallel()
	run := runID(t, "ab")
	d := escalation.StepDigest(run, 3, middleware.ComponentTool, ident.MustLabel("issue_refund"))
	// printf '%s' '{"component":"tool","label":"issue_refund","run_id":"run_abab…","step":3}' | sha256sum
	if d.Hex() != "ae221d2aa3c5a23245f58bbed6d669e61264fa2145d0d17bb529daf6236fe4d4" {
		t.Errorf("got %s", d.Hex())
	}
	if d == escalation.StepDigest(run, 4, middleware.ComponentTool, ident.MustLabel("issue_refund")) ||
		d == escalation.StepDigest(runID(t, "ac"), 3, middleware.ComponentTool, ident.MustLabel("issue_refund")) {
		t.Error("different steps have one digest")
	}
}
